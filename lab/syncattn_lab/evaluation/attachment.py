"""Score the attachment of dependency heads: in all, by a word's label, and by distance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import TypeAlias

from syncattn_fairseq.base.errors import DataError

Heads: TypeAlias = Sequence[int]
"""The head of each word of a sentence, 1-based; 0 is the root."""

DISTANCES = ("root", "1", "2", "3-4", "5-9", "10+")
"""Ranges of the distance in words from a word to its gold head, to the left or right."""
_FIRST = (1, 2, 3, 5, 10)


@dataclass(frozen=True)
class AttachmentScore:
    """Attachment counts: words with the right head, scored words, words with a gold head."""

    correct: int
    counted: int
    total: int
    parts: Mapping[str, Mapping[str, AttachmentScore]] = field(default_factory=dict, compare=False)
    """The scores of groups of words, by ``distance`` and, if labels are given, by ``label``.

    Distances are those of `DISTANCES` that occur; labels begin with the most frequent.
    """

    @property
    def uas(self) -> float:
        """Unlabelled attachment score as a fraction; 0 if no word was scored."""
        return self.correct / self.counted if self.counted else 0.0

    @property
    def coverage(self) -> float:
        """Share of the words with a gold head that were scored."""
        return self.counted / self.total if self.total else 0.0

    def as_dict(self) -> dict[str, float]:
        """Return all numbers as a dictionary for JSON, without those of groups of words."""
        counts = {"correct": self.correct, "counted": self.counted, "total": self.total}
        return counts | {"uas": self.uas, "coverage": self.coverage}


def score_attachment(
    predicted: Sequence[Heads],
    gold: Sequence[Heads | None],
    left_only: bool = False,
    labels: Sequence[Sequence[str] | None] | None = None,
) -> AttachmentScore:
    """Compare predicted dependency heads with gold heads; skip sentences without gold heads.

    Args:
        left_only: count only the words whose gold head is the root or is to their left. A
            causal decoder cannot attend to a head that it has yet to produce.
        labels: gold labels of each sentence; only used if there are gold heads.

    Raises:
        DataError: the numbers of sentences or words differ.
    """
    for name, rows in (("heads", predicted), ("labels", labels)):
        if rows is not None and len(rows) != len(gold):
            raise DataError(
                f"{name} of {len(rows)} sentences, but gold heads of {len(gold)} sentences"
            )
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    sentences = zip(predicted, gold, labels or repeat(()), strict=False)
    for number, (heads, truth, names) in enumerate(sentences, 1):
        if not truth:
            continue
        sizes = {"heads": len(heads), "gold heads": len(truth)}
        sizes |= {"labels": len(names or ())} if labels else {}
        if len({*sizes.values()}) > 1:
            text = ", ".join(f"{size} {name}" for name, size in sizes.items())
            raise DataError(f"sentence {number}: {text}")
        for position, (head, right) in enumerate(zip(heads, truth, strict=True), 1):
            counted = not left_only or right <= position
            kinds = [("", ""), ("distance", _distance(position, right))]
            kinds += [("label", names[position - 1])] if names else []
            for kind in kinds:
                count = counts[kind]
                count[0] += counted and head == right
                count[1] += counted
                count[2] += 1
    parts: dict[str, dict[str, AttachmentScore]] = {"distance": {}, "label": {}, "": {}}
    order = {name: number for number, name in enumerate(DISTANCES)}
    for (part, name), numbers in sorted(counts.items(), key=lambda one: (-one[1][2], one[0])):
        parts[part][name] = AttachmentScore(numbers[0], numbers[1], numbers[2])
    parts["distance"] = dict(sorted(parts["distance"].items(), key=lambda one: order[one[0]]))
    whole = parts.pop("").get("", AttachmentScore(0, 0, 0))
    return replace(whole, parts=parts)


def _distance(position: int, head: int) -> str:
    if head == 0:
        return DISTANCES[0]
    return DISTANCES[sum(abs(position - head) >= first for first in _FIRST)]
