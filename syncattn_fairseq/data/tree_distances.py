"""How far apart subwords are in the dependency tree of their words."""

from __future__ import annotations

import torch
from torch import Tensor

from ..functional import tree_distances
from .subwords import CONTINUATION, NO_HEAD, NO_TOKEN, find_parents


def measure_tree_distances(marks: Tensor, ends: Tensor) -> Tensor:
    """Spread the distances of words over their subwords.

    Subwords of one word are 0 apart. The end of a sentence hangs from the root, as a full stop
    does. In a sentence without parse all are 0 apart, so that none is nearer than another.

    Args:
        marks: ``(B, S)``, see :mod:`.subwords`.
        ends: ``(B, S)``, True = end of sentence.

    Returns:
        ``(B, S, S)`` edges, int16; arbitrary for padding.
    """
    columns = torch.arange(marks.size(1)).expand_as(marks)
    parents = find_parents(marks, "first")
    parents = torch.where(parents < 0, columns, parents)
    word = columns.masked_fill(marks == CONTINUATION, 0).cummax(dim=1).values
    root = ((parents == columns) & (marks != NO_TOKEN)).long().argmax(dim=1, keepdim=True)
    parents = torch.where(ends, root, parents)
    between_words = tree_distances(parents)
    distances = between_words.gather(1, word.unsqueeze(2).expand_as(between_words))
    distances = distances.gather(2, word.unsqueeze(1).expand_as(between_words))
    unparsed = (marks == NO_HEAD).any(dim=1)
    return distances.masked_fill(unparsed[:, None, None], 0).short()
