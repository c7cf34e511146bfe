"""Syntax-guided localized self-attention: gates like LPSI's, set by a parser.

Hou et al., *Syntax-guided Localized Self-attention by Constituency Syntactic Distance*, Findings of
EMNLP 2022. The distance `d_i` between word i and the word before it comes from a tree: it is the
height of the smallest subtree that holds both.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ._numerics import widen
from ._trees import find_ancestors
from .lpsi import sum_between


def supervised_gates(distances: Tensor, temperature: float = 10.0) -> Tensor:
    """Compute the gates between words, which higher boundaries between the words shut.

    .. math::
        α_{j,t} = (1 + tanh((d_t − d_j) / τ)) / 2
        g_{t,i} = Π_j α_{j,t}

    over the words j between i and t, t being the query: LPSI Eq. 5 with another squashing function.
    A word itself and its neighbours have gate 1.

    Args:
        distances: d, ``(..., T)``; NaN = unknown, which shuts no gate.
        temperature: τ.

    Returns:
        g, ``(..., T, T)``, row = query.
    """
    return supervised_log_gates(distances, temperature).exp()


def supervised_log_gates(distances: Tensor, temperature: float = 10.0) -> Tensor:
    """Compute the logarithm of :func:`supervised_gates`, to add to the scores."""
    distances = widen(distances)
    differences = distances.unsqueeze(-1) - distances.unsqueeze(-2)
    factors = F.logsigmoid(2 * differences / temperature)  # (1 + tanh x) / 2 = sigmoid(2 x)
    return sum_between(factors.masked_fill(differences.isnan(), 0.0))


def gap_heights(parents: Tensor, words: Tensor) -> Tensor:
    """Measure the distances of neighbouring words in a dependency tree.

    The subtree of a word is the word and everything below it; its height is the number of edges
    down to its lowest word.

    Args:
        parents: ``(..., T)`` integer columns; a root is its own parent.
        words: ``(..., T)`` the column of each token's word: the column of its first subword.

    Returns:
        ``(..., T)`` int64: at the first token of a word, the height of the smallest subtree that
        holds this word and the word before it, or of the highest tree if there is no such subtree,
        as at the first word; 0 at other tokens of a word.

    Raises:
        ValueError: the parents form a cycle, see :func:`._trees.find_ancestors`.
    """
    columns = torch.arange(parents.size(-1), device=parents.device)
    above = find_ancestors(parents)
    depth = above.sum(-1)
    below = depth.unsqueeze(-1) * above  # row = word, column = the word above it
    height = below.amax(-2) - depth
    before = words.gather(-1, (columns - 1).clamp_min(0).expand_as(words))
    rows = above.gather(-2, words.unsqueeze(-1).expand_as(above))
    common = rows * above.gather(-2, before.unsqueeze(-1).expand_as(above))
    highest = height.amax(-1, keepdim=True)
    heights = height.unsqueeze(-2).where(common > 0, highest.unsqueeze(-1)).amin(-1)
    heights = heights.where(columns > 0, highest).masked_fill(words != columns, 0)
    return heights.long()
