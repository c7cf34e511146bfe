"""Score the attachment of dependency heads: in all, by the label of a word, by distance."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...base.errors import DataError

Heads: TypeAlias = Sequence[int]
"""The head of each word of a sentence, 1-based; 0 is the root."""

DISTANCES = ("root", "1", "2", "3-4", "5-9", "10+")
"""Distance in words from a word to its gold head, on either side."""
_FIRST = (1, 2, 3, 5, 10)


@dataclass(frozen=True)
class AttachmentScore:
    """Numbers of words with the right head, of counted words, and of words with a gold head."""

    correct: int
    counted: int
    total: int

    @property
    def uas(self) -> float:
        """Unlabelled attachment score as a fraction; 0 if no word was counted."""
        return self.correct / self.counted if self.counted else 0.0

    @property
    def coverage(self) -> float:
        """Share of the words with a gold head that were counted."""
        return self.counted / self.total if self.total else 0.0


def score_attachment(
    predicted: Sequence[Heads], gold: Sequence[Heads | None], left_only: bool = False
) -> AttachmentScore:
    """Compare predicted heads with gold heads over a corpus; sentences without gold are skipped.

    Args:
        predicted: heads of each sentence.
        gold: gold heads of each sentence; None (or empty) without a parse.
        left_only: count only the words whose gold head is the root or is to their left. A
            causal decoder cannot attend to a head that it has yet to produce.

    Raises:
        DataError: the numbers of sentences or words differ.
    """
    if len(predicted) != len(gold):
        raise DataError(f"heads of {len(predicted)} sentences, gold heads of {len(gold)}")
    classes = ([""] * len(heads or ()) for heads in gold)
    return score_classes(predicted, gold, classes, left_only).get("", AttachmentScore(0, 0, 0))


def score_classes(
    predicted: Sequence[Heads],
    gold: Sequence[Heads | None],
    classes: Iterable[Sequence[str]],
    left_only: bool,
) -> dict[str, AttachmentScore]:
    """Compare heads as `score_attachment` does, for each class of words.

    Args:
        predicted: heads of each sentence.
        gold: gold heads of each sentence; None (or empty) without a parse.
        classes: the class of each word of each sentence; only used if there are gold heads.
        left_only: as for `score_attachment`.

    Raises:
        DataError: the numbers of words differ.
    """
    counts: dict[str, list[int]] = {}
    for number, (guess, truth, names) in enumerate(zip(predicted, gold, classes, strict=True), 1):
        if not truth:
            continue
        if not len(guess) == len(truth) == len(names):
            labels = f", {len(names)} labels" if len(names) != len(truth) else ""
            raise DataError(
                f"sentence {number}: {len(guess)} heads, {len(truth)} gold heads{labels}"
            )
        for position, (a, b, name) in enumerate(zip(guess, truth, names, strict=True), 1):
            count = counts.setdefault(name, [0, 0, 0])
            count[2] += 1
            if not left_only or b <= position:
                count[0] += a == b
                count[1] += 1
    return {name: AttachmentScore(*count) for name, count in counts.items()}


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
