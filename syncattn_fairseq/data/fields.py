"""Requests of models and losses for tensors made from parses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..base.errors import DataError
from .subwords import NO_HEAD, NO_TOKEN, find_parents, spread_over_subwords
from .tree_distances import measure_between_words, measure_tree_distances

#: Takes the marks of a batch, its tokens, and their dictionary; see :attr:`SourceField.collate`.
Collate = Callable[[Tensor, Tensor, Any], Tensor]


@dataclass(frozen=True)
class SourceField:
    """A tensor made from the source's parse, an input of the encoder in ``net_input``.

    Attributes:
        name: its name there.
        collate: makes it from marks ``(B, S)`` (:mod:`.subwords`), the batch's tokens ``(B, S)``
            and the source's dictionary.
        kind: what the marks are: ``heads``, or ``labels`` for indices of dependency labels.
        control: whose heads: those of the ``parse``, or of a control (:mod:`.controls`).
        needs_tree: whether they must form a tree, as for distances. ``--source-trees shuffled``,
            whose heads form none, is then refused.
    """

    name: str
    collate: Collate
    kind: str = "heads"
    control: str = "parse"
    needs_tree: bool = False


@dataclass(frozen=True)
class LossField:
    """A tensor in the batch for a loss, made from the words and parse of a single side.

    Attributes:
        name: its name there.
        side: ``source`` or ``target``.
        collate: as for :class:`SourceField`; the target's tokens are those to be predicted.
        control: whose heads, as there; or ``words``, for marks that only say where words begin,
            which every text has.
    """

    name: str
    side: str
    collate: Collate
    control: str = "parse"


@dataclass(frozen=True)
class SourceFields:
    """The batch fields for a model; ``|`` combines the fields of an ensemble's models.

    Attributes:
        rules: for training its dependency heads (:func:`.subwords.find_parents`).
        fields: what its encoder reads.
    """

    rules: frozenset[str] = frozenset()
    fields: frozenset[SourceField] = frozenset()

    def __or__(self, other: SourceFields) -> SourceFields:
        """Combine the needs of two models."""
        return SourceFields(self.rules | other.rules, self.fields | other.fields)

    def of_trees(self, control: str) -> SourceFields:
        """Read a control's heads wherever the parse's are read (:attr:`SourceField.control`)."""
        changed = (
            replace(field, control=control)
            if (field.kind, field.control) == ("heads", "parse")
            else field
            for field in self.fields
        )
        return replace(self, fields=frozenset(changed))

    def reads(self, kind: str) -> bool:
        """Return whether decoding needs the source's ``heads``, or its ``labels``."""
        return any(field.kind == kind for field in self.fields)

    def choose_rule(self) -> str:
        """Return the rule for training dependency heads; of several, the first by name."""
        return min(self.rules, default="chain")

    def list_by_name(self) -> list[SourceField]:
        """List the fields by name; `DataError` if two models use a name for different fields."""
        fields = sorted(self.fields, key=lambda field: (field.name, field.control))
        for one, other in zip(fields, fields[1:], strict=False):
            if one.name == other.name:
                raise DataError(
                    f"the models of the ensemble read {one.name} of different kinds "
                    f"({one.control}, {other.control}); decode with models of the same kind"
                )
        return fields


NOTHING = SourceFields()


def _collate_positions(marks: Tensor, tokens: Tensor, dictionary: Any) -> Tensor:
    parents = find_parents(marks, "middle")
    ends = tokens.eq(dictionary.eos()) & ~parents.isnan().all(1, keepdim=True)
    columns = torch.arange(tokens.size(1), dtype=parents.dtype)
    return torch.where(ends, columns, parents).double()


def _collate_labels(marks: Tensor, tokens: Tensor, dictionary: Any) -> Tensor:
    labels = spread_over_subwords(marks)
    labels[labels == NO_HEAD] = dictionary.unk()
    # The special symbols have the same indices in all of fairseq's dictionaries.
    return torch.where(labels == NO_TOKEN, tokens, labels)


def _collate_tree_distances(marks: Tensor, tokens: Tensor, dictionary: Any) -> Tensor:
    return measure_tree_distances(marks, tokens.eq(dictionary.eos()))


#: ``src_parent_positions``: ``(B, S)`` columns where each token's parent stands: the middle of
#: the parent word, maybe between two columns; NaN = no parent. The end of a sentence that has a
#: parse is its own parent. float64, since fairseq would halve float32, and bfloat16 is too coarse.
PARENT_POSITIONS = SourceField("src_parent_positions", _collate_positions)

#: ``src_labels``: ``(B, S)`` indices of dependency labels, or of tokens that are not words.
LABELS = SourceField("src_labels", _collate_labels, kind="labels")

#: ``src_tree_distances``: ``(B, S, S)`` edges between the words of any two tokens, int16.
TREE_DISTANCES = SourceField("src_tree_distances", _collate_tree_distances, needs_tree=True)


#: The distances between words that a loss can ask for, and whose heads they need.
WORD_DISTANCES = {"tree": "parse", "linear": "words", "random": "random"}


def ask_for_word_distances(side: str, distance: str) -> LossField:
    """Ask for one of :data:`WORD_DISTANCES` between the words of ``source`` or ``target``."""
    collate = _collate_linear_distances if distance == "linear" else _collate_word_distances
    return LossField(f"{side}_{distance}_distances", side, collate, WORD_DISTANCES[distance])


def _collate_word_distances(marks: Tensor, tokens: Tensor, dictionary: Any) -> Tensor:
    return measure_between_words(marks)


def _collate_linear_distances(marks: Tensor, tokens: Tensor, dictionary: Any) -> Tensor:
    return measure_between_words(marks, linear=True)
