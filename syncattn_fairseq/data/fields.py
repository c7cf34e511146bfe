"""What models ask of the data about the source's parse."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.errors import DataError


@dataclass(frozen=True)
class SourceFields:
    """The fields that a model wants in its batches; those of an ensemble are united by ``|``.

    Attributes:
        rules: by which its dependency heads are trained (:func:`.subwords.parents_from_marks`).
        scaling: whose parents its parent-scaled heads are given, as ``net_input.src_parents``:
            ``parse``, or the controls ``shuffled`` and ``random`` (:mod:`.controls`).
        labels: its embedding reads dependency labels, ``net_input.src_labels``.
        tree_distances: its attention to the source reads ``net_input.src_tree_distances``.
    """

    rules: frozenset[str] = frozenset()
    scaling: frozenset[str] = frozenset()
    labels: bool = False
    tree_distances: bool = False

    def __or__(self, other: SourceFields) -> SourceFields:
        """Unite the wishes of two models."""
        return SourceFields(
            self.rules | other.rules,
            self.scaling | other.scaling,
            self.labels or other.labels,
            self.tree_distances or other.tree_distances,
        )

    def reads_heads(self) -> bool:
        """Whether decoding needs the source's heads."""
        return bool(self.scaling) or self.tree_distances

    def rule(self) -> str:
        """Return the rule of the labels of dependency heads; of several, the first by name."""
        return min(self.rules, default="chain")

    def scaled_parents(self) -> str | None:
        """Return whose parents the parent-scaled heads are given, None if there are none.

        Raises:
            DataError: an ensemble has several.
        """
        if len(self.scaling) > 1:
            raise DataError(
                "the ensemble's parent-scaled heads are given different parents "
                f"({', '.join(sorted(self.scaling))}); decode with models of one kind"
            )
        return next(iter(self.scaling), None)


NOTHING = SourceFields()
