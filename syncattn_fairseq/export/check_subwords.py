"""The check that the subword model to export is the one that the corpus was split with."""

from __future__ import annotations

from ..base.errors import DataError
from ..data.segmenters import Codes
from ..data.words import join_subwords
from .check import Sample
from .folded_model import FoldedModel


def check_subwords(folded: FoldedModel, sample: Sample) -> None:
    """Split sentences of the binarised corpus again, and compare.

    Sentences with unknown subwords are left out. A few others may differ, such as those with white
    space inside words.

    Raises:
        DataError: most sentences are split in another way.
    """
    if folded.subwords is None or folded.segmenters is None:
        return
    sides = sample.sources(folded.source_words), sample.targets(folded.target_words)
    for model, segmenter, rows in zip(folded.subwords, folded.segmenters, sides, strict=True):
        known = [row for row in rows if row and "<unk>" not in row]
        same = sum(segmenter.segment(join_subwords(row, segmenter.scheme)) == row for row in known)
        if 2 * same < len(known):
            raise DataError(
                f"{model.path}: splits {len(known) - same} of {len(known)} sentences of "
                f"{folded.task.cfg.data} in another way; give the subword model of the training"
                + (", and its --vocabulary if it had one" if isinstance(segmenter, Codes) else "")
            )
