"""Compute BLEU of short and of long sentences, by the number of words in the source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from ..base.errors import DataError
from ..data.words import detect_scheme
from ..printed.decoded import DecodedSentence
from .significance import bootstrap_interval
from .translation import undo_subwords

BUCKETS = ("1-10", "11-20", "21-30", "31-40", "41-50", "51+")
"""Words of the source; an empty sentence counts as the shortest."""
FEWEST = 10
"""Fewer sentences say too little about others for an interval."""


@dataclass(frozen=True)
class BucketScore:
    """BLEU, from 0 to 100, of the sentences of one bucket."""

    sentences: int
    bleu: float
    interval: tuple[float, float] | None = None
    """The 95 % interval of the difference to the baseline, by bootstrap resampling; None without a
    baseline, or with fewer than `FEWEST` sentences."""


def score_by_length(
    translations: Sequence[str],
    references: Sequence[str],
    lengths: Sequence[int],
    tokenize: str = "13a",
) -> dict[str, BucketScore]:
    """Compute corpus BLEU of each of the `BUCKETS` that has sentences, from short to long.

    Args:
        translations: detokenised text.
        references: the same number of lines.
        lengths: number of words of each source sentence.
        tokenize: sacreBLEU's tokenizer.

    Raises:
        DataError: the numbers of sentences differ.
    """
    if not len(translations) == len(references) == len(lengths):
        raise DataError(
            f"{len(translations)} translations, {len(references)} references and {len(lengths)} "
            "source sentences; all need one line per sentence"
        )
    metric = BLEU(tokenize=tokenize, force=True)  # so that it does not repeat its warnings
    return {
        bucket: BucketScore(
            len(indices),
            metric.corpus_score(
                [translations[i] for i in indices], [[references[i] for i in indices]]
            ).score,
        )
        for bucket, indices in _buckets(lengths).items()
    }


def _buckets(lengths: Sequence[int]) -> dict[str, list[int]]:
    """Return the sentences of each bucket that has any."""
    members: list[list[int]] = [[] for _ in BUCKETS]
    for index, length in enumerate(lengths):
        members[min(max(length - 1, 0) // 10, len(BUCKETS) - 1)].append(index)
    return {name: found for name, found in zip(BUCKETS, members, strict=True) if found}


def intervals_by_length(
    counts: np.ndarray, baseline: np.ndarray, lengths: Sequence[int]
) -> dict[str, tuple[float, float]]:
    """Return the 95 % interval of the difference to the baseline's BLEU in each bucket.

    Args:
        counts, baseline: of `count_ngrams`.
        lengths: number of words of each source sentence.
    """
    return {
        name: bootstrap_interval(counts[indices], baseline[indices])
        for name, indices in _buckets(lengths).items()
        if len(indices) >= FEWEST
    }


def count_source_words(
    outputs: Iterable[Sequence[DecodedSentence]], scheme: str | None = None
) -> list[int]:
    """Count the words of each source sentence in the first output that has S- lines.

    If an unknown subword hides the end of a word, two words count as one.

    Raises:
        DataError: no output has S- lines.
    """
    for output in outputs:
        sources = [sentence.source for sentence in output]
        if any(sources):
            words = undo_subwords(sources, scheme or detect_scheme(sources))
            return [len(text.split()) for text in words]
    raise DataError("no output has S- lines, which give the length of the source; give --source")
