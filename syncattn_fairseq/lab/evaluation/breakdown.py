"""Show where parsers err: attachment by the label of a word, and by the distance to its head."""

from collections.abc import Sequence

from ...base.errors import DataError
from .attachment import AttachmentScore, Heads, score_classes

DISTANCES = ("root", "1", "2", "3-4", "5-9", "10+")
"""Distance in words from a word to its gold head, on either side."""
_FIRST = (1, 2, 3, 5, 10)


def attachment_by_distance(
    predicted: Sequence[Heads], gold: Sequence[Heads | None], left_only: bool = False
) -> dict[str, AttachmentScore]:
    """Compare heads as `score_attachment` does, for each of the `DISTANCES` that has words."""
    classes = ([_distance(i, head) for i, head in enumerate(heads or (), 1)] for heads in gold)
    scores = score_classes(predicted, gold, classes, left_only)
    return {distance: scores[distance] for distance in DISTANCES if distance in scores}


def attachment_by_label(
    predicted: Sequence[Heads],
    gold: Sequence[Heads | None],
    labels: Sequence[Sequence[str] | None],
    left_only: bool = False,
) -> dict[str, AttachmentScore]:
    """Compare heads as `score_attachment` does, for each label, the most frequent one first.

    Args:
        predicted: heads of each sentence.
        gold: gold heads of each sentence; None without a parse.
        labels: gold labels of each sentence; only used if there are gold heads.
        left_only: count only the words whose gold head is the root or is to their left.

    Raises:
        DataError: the numbers of sentences or words differ.
    """
    if len(labels) != len(gold):
        raise DataError(f"labels of {len(labels)} sentences, gold heads of {len(gold)}")
    scores = score_classes(predicted, gold, (row or () for row in labels), left_only)
    return dict(sorted(scores.items(), key=lambda item: (-item[1].total, item[0])))


def _distance(position: int, head: int) -> str:
    if head == 0:
        return DISTANCES[0]
    return DISTANCES[sum(abs(position - head) >= first for first in _FIRST)]
