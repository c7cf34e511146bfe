"""Measure how far apart subwords are in the dependency tree of their words."""

import torch
from torch import Tensor

from ..functional import tree_distances
from .subwords import CONTINUATION, NO_HEAD, NO_TOKEN, find_parents


def lay_out_trees(marks: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    """Return, for each token of a batch, its parent's column and the first column of its word.

    The end of a sentence hangs from the root, as a full stop does. Padding, subwords that do not
    begin a word, and words without a parent hang from nothing: they are their own parents. So are
    words whose heads were cut off with the end of a long sentence; if the root was, too, the end
    of the sentence hangs from the first of them.

    Args:
        marks: ``(B, S)``, see :mod:`.subwords`.
        ends: ``(B, S)``, True = end of sentence.

    Returns:
        The parents, and the column where each token's word begins, both ``(B, S)``.
    """
    columns = torch.arange(marks.size(1)).expand_as(marks)
    continues = marks == CONTINUATION
    parents = find_parents(marks, "first")
    parents = torch.where((parents < 0) | continues, columns, parents)
    roots = (parents == columns) & (marks != NO_TOKEN) & ~continues
    root = (roots.long() + (marks == 0)).argmax(dim=1, keepdim=True)
    parents = torch.where(ends, root, parents)
    return parents, columns.masked_fill(continues, 0).cummax(dim=1).values


def measure_tree_distances(marks: Tensor, ends: Tensor) -> Tensor:
    """Return tree distances between the words of any two subwords, ``(B, S, S)`` int16.

    Subwords of one word are 0 apart. The end of a sentence hangs from the root. In a sentence
    without a parse all are 0 apart, so that none is nearer than another. Padding is arbitrary.
    """
    parents, word = lay_out_trees(marks, ends)
    between_words = tree_distances(parents)
    distances = between_words.gather(1, word.unsqueeze(2).expand_as(between_words))
    distances = distances.gather(2, word.unsqueeze(1).expand_as(between_words))
    unparsed = (marks == NO_HEAD).any(dim=1)
    return distances.masked_fill(unparsed[:, None, None], 0).short()


def measure_between_words(marks: Tensor, linear: bool = False) -> Tensor:
    """Return word distances between any two subwords, ``(B, T, T)`` int16, for a loss.

    Subwords of one word are 0 apart. It is -1 where a token is no word, or in a sentence without
    a parse; ``linear`` counts words in the text, not edges in the tree, which needs no parse.
    """
    outside = marks == NO_TOKEN
    if linear:
        numbers = ((marks != CONTINUATION) & ~outside).cumsum(1)
        distances = (numbers.unsqueeze(2) - numbers.unsqueeze(1)).abs().short()
    else:
        distances = measure_tree_distances(marks, torch.zeros_like(outside))
        outside = outside | (marks == NO_HEAD).any(dim=1, keepdim=True)
    return distances.masked_fill(outside.unsqueeze(2) | outside.unsqueeze(1), -1)
