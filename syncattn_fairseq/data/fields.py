"""What models ask of the data about the source's parse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..base.errors import DataError
from .subwords import NO_HEAD, NO_TOKEN, find_parents, spread_over_subwords
from .tree_distances import measure_tree_distances

#: From marks of a batch, its tokens, and their dictionary; see :attr:`SourceField.collate`.
Collate = Callable[[Tensor, Tensor, Any], Tensor]


@dataclass(frozen=True)
class SourceField:
    """A tensor that is made of the source's parse and handed to the encoder in ``net_input``.

    Attributes:
        name: its name there.
        collate: makes it of marks ``(B, S)`` (:mod:`.subwords`), the batch's tokens ``(B, S)`` and
            the source's dictionary.
        of: what the marks are: ``heads``, or ``labels`` for indices of dependency labels.
        control: whose heads they are: those of the parse, or of a control (:mod:`.controls`).
    """

    name: str
    collate: Collate
    of: str = "heads"
    control: str = "parse"


@dataclass(frozen=True)
class SourceFields:
    """What a model wants in its batches; the wishes of an ensemble are united by ``|``.

    Attributes:
        rules: by which its dependency heads are trained (:func:`.subwords.find_parents`).
        fields: what its encoder reads.
    """

    rules: frozenset[str] = frozenset()
    fields: frozenset[SourceField] = frozenset()

    def __or__(self, other: SourceFields) -> SourceFields:
        """Unite two wishes."""
        return SourceFields(self.rules | other.rules, self.fields | other.fields)

    def reads(self, kind: str) -> bool:
        """Say whether decoding needs the source's ``heads``, or its ``labels``."""
        return any(field.of == kind for field in self.fields)

    def choose_rule(self) -> str:
        """Return the rule by which dependency heads are trained; of several, the first by name."""
        return min(self.rules, default="chain")

    def list_by_name(self) -> list[SourceField]:
        """List the fields in the order of their names.

        Raises:
            DataError: two models of an ensemble read different things under one name.
        """
        fields = sorted(self.fields, key=lambda field: (field.name, field.control))
        for one, other in zip(fields, fields[1:], strict=False):
            if one.name == other.name:
                raise DataError(
                    f"the ensemble's models are given different {one.name} ({one.control}, "
                    f"{other.control}); decode with models of one kind"
                )
        return fields


NOTHING = SourceFields()


def ask_for_parents(control: str = "parse") -> SourceField:
    """Ask for ``src_parent_positions``: where the parent of each token stands.

    ``(B, S)`` columns in float64 (fairseq halves float32, and bfloat16 cannot count): the middle of
    the parent word, maybe between two columns; NaN = no parent. The end of a sentence that has a
    parse is its own parent.

    Args:
        control: whose parents: ``parse``, ``shuffled`` or ``random``.
    """
    return SourceField("src_parent_positions", _collate_positions, control=control)


def _collate_positions(marks: Tensor, tokens: Tensor, dictionary: Any) -> Tensor:
    parents = find_parents(marks, "middle")
    ends = tokens.eq(dictionary.eos()) & ~parents.isnan().all(1, keepdim=True)
    columns = torch.arange(tokens.size(1), dtype=parents.dtype)
    return torch.where(ends, columns, parents).double()


def _collate_labels(marks: Tensor, tokens: Tensor, dictionary: Any) -> Tensor:
    labels = spread_over_subwords(marks)
    labels[labels == NO_HEAD] = dictionary.unk()
    # fairseq's dictionaries agree about the indices of what is not in a text.
    return torch.where(labels == NO_TOKEN, tokens, labels)


def _collate_tree_distances(marks: Tensor, tokens: Tensor, dictionary: Any) -> Tensor:
    return measure_tree_distances(marks, tokens.eq(dictionary.eos()))


#: ``src_labels``: ``(B, S)`` indices of dependency labels, of tokens where there is no word.
LABELS = SourceField("src_labels", _collate_labels, of="labels")

#: ``src_tree_distances``: ``(B, S, S)`` edges between the words of each two tokens, int16.
TREE_DISTANCES = SourceField("src_tree_distances", _collate_tree_distances)
