"""Batch fields requested by models and losses, made from parses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..base.errors import DataError
from .subwords import NO_HEAD, NO_TOKEN, find_parents, spread_over_subwords
from .tree_distances import measure_between_words, measure_tree_distances

#: Function that makes a field from a batch's marks and tokens, and their dictionary; see
#: :attr:`SourceField.collate`.
Collate = Callable[[Tensor, Tensor, Any], Tensor]


@dataclass(frozen=True)
class SourceField:
    """A batch field made from the source's parse, which the encoder gets in ``net_input``.

    Attributes:
        name: the key of the field in ``net_input``.
        collate: makes the field from marks ``(B, S)`` (:mod:`.subwords`), the batch's tokens
            ``(B, S)`` and the source's dictionary.
        kind: what the marks are: ``heads``, or ``labels`` for indices of dependency labels.
        control: whether the heads are those of the ``parse``, or the name of a control
            (:mod:`.controls`).
        needs_tree: whether the heads must form a tree, as for distances. ``--source-trees
            shuffled``, whose heads form none, is then refused.
    """

    name: str
    collate: Collate
    kind: str = "heads"
    control: str = "parse"
    needs_tree: bool = False


@dataclass(frozen=True)
class LossField:
    """A batch field for a loss, made from the words and the parse of the source or target.

    Attributes:
        name: the key of the field in the batch.
        side: ``source`` or ``target``.
        collate: see :class:`SourceField`; the target's tokens are those to be predicted.
        control: see :class:`SourceField`; or ``words``, for marks that only say where words begin,
            which every text has.
    """

    name: str
    side: str
    collate: Collate
    control: str = "parse"


@dataclass(frozen=True)
class SourceFields:
    """The batch fields made from parses that a model requests; ``|`` unites them for an ensemble.

    Attributes:
        rules: the rules for training dependency heads (:func:`.subwords.find_parents`).
        fields: the fields that the encoder reads.
    """

    rules: frozenset[str] = frozenset()
    fields: frozenset[SourceField] = frozenset()

    def __or__(self, other: SourceFields) -> SourceFields:
        """Return the fields requested by either of two models."""
        return SourceFields(self.rules | other.rules, self.fields | other.fields)

    def of_trees(self, control: str) -> SourceFields:
        """Return the fields with control trees (fake parses) in place of the source's parses.

        See :attr:`SourceField.control`.
        """
        changed = (
            replace(field, control=control)
            if (field.kind, field.control) == ("heads", "parse")
            else field
            for field in self.fields
        )
        return replace(self, fields=frozenset(changed))

    def reads(self, kind: str) -> bool:
        """Return whether the encoder reads the source's annotations of a kind: heads or labels."""
        return any(field.kind == kind for field in self.fields)

    def choose_rule(self) -> str:
        """Return the rule for mapping heads of words to parents of subwords in training.

        Of several models' rules, it is the first by name.
        """
        return min(self.rules, default="chain")

    def list_by_name(self) -> list[SourceField]:
        """List the fields by name; raise `DataError` if two different fields have one name."""
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


#: Field ``src_parent_positions``, ``(B, S)``: the column of each token's parent, which is the
#: middle of the parent word, maybe between two columns; NaN = no parent. The end of a sentence that
#: has a parse is its own parent. float64, since fairseq would halve float32, and bfloat16 is too
#: coarse.
PARENT_POSITIONS = SourceField("src_parent_positions", _collate_positions)

#: Field ``src_labels``, ``(B, S)``: the index of the dependency label of each token's word; the end
#: of sentence and padding keep their token.
LABELS = SourceField("src_labels", _collate_labels, kind="labels")

#: Field ``src_tree_distances``, ``(B, S, S)`` int16: the number of edges in the dependency tree
#: between the words of any two tokens.
TREE_DISTANCES = SourceField("src_tree_distances", _collate_tree_distances, needs_tree=True)


#: Kinds of distances between words that a loss can request, and the control
#: (:attr:`LossField.control`) that each is measured with.
WORD_DISTANCES = {"tree": "parse", "linear": "words", "random": "random"}


def ask_for_word_distances(side: str, distance: str) -> LossField:
    """Return the batch field that gives a loss the distances between words, in tree or text.

    The kinds are in :data:`WORD_DISTANCES`.
    """
    collate = _collate_linear_distances if distance == "linear" else _collate_word_distances
    return LossField(f"{side}_{distance}_distances", side, collate, WORD_DISTANCES[distance])


def _collate_word_distances(marks: Tensor, tokens: Tensor, dictionary: Any) -> Tensor:
    return measure_between_words(marks)


def _collate_linear_distances(marks: Tensor, tokens: Tensor, dictionary: Any) -> Tensor:
    return measure_between_words(marks, linear=True)
