"""Syntax-guided localized self-attention: gates like LPSI's, opened and shut by a parser.

Hou et al., *Syntax-guided Localized Self-attention by Constituency Syntactic Distance*, Findings of
EMNLP 2022. The distance `d_i` between word i and the one before it is read off a tree: it is
the height of the smallest subtree that holds both.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ._numerics import widen
from ._trees import find_ancestors
from .lpsi import sum_between


def supervised_gates(distances: Tensor, temperature: float = 10.0) -> Tensor:
    """Open the gate between two words as far as no higher boundary stands between them.

    .. math::
        α_{j,t} = (1 + tanh((d_t − d_j) / τ)) / 2
        g_{t,i} = Π_j α_{j,t}

    over the words j between i and t, t being the query: LPSI Eq. 5 with another squashing function.
    A word itself and its neighbours have gate 1.

    Args:
        distances: d, ``(..., T)``; NaN = not known, which shuts nothing.
        temperature: τ.

    Returns:
        g, ``(..., T, T)``, row = query.
    """
    return supervised_log_gates(distances, temperature).exp()


def supervised_log_gates(distances: Tensor, temperature: float = 10.0) -> Tensor:
    """Return the logarithm of :func:`supervised_gates`, to be added to the scores."""
    distances = widen(distances)
    differences = distances.unsqueeze(-1) - distances.unsqueeze(-2)
    factors = F.logsigmoid(2 * differences / temperature)  # (1 + tanh x) / 2 = sigmoid(2 x)
    return sum_between(factors.masked_fill(differences.isnan(), 0.0))


def gap_heights(parents: Tensor, words: Tensor) -> Tensor:
    """Measure the distances of neighbouring words in a dependency tree.

    The subtree of a word is the word and all below it; its height is the number of edges down to
    its lowest word.

    Args:
        parents: ``(..., T)`` integer columns; a root is its own parent.
        words: ``(..., T)`` the column of each token's word: subwords share their first one's.

    Returns:
        ``(..., T)`` int64: at the first token of a word, the height of the smallest subtree that
        holds this word and the one before it; 0 at other tokens of a word; at the first word, as
        everywhere where no subtree holds both, the height of the highest tree.

    Raises:
        ValueError: the parents go round in a cycle, see :func:`._trees.find_ancestors`.
    """
    columns = torch.arange(parents.size(-1), device=parents.device)
    above = find_ancestors(parents)
    depth = above.sum(-1)
    below = depth.unsqueeze(-1) * above  # row = word, column = what is above it
    height = below.amax(-2) - depth
    before = words.gather(-1, (columns - 1).clamp_min(0).expand_as(words))
    rows = above.gather(-2, words.unsqueeze(-1).expand_as(above))
    common = rows * above.gather(-2, before.unsqueeze(-1).expand_as(above))
    highest = height.amax(-1, keepdim=True)
    heights = height.unsqueeze(-2).where(common > 0, highest.unsqueeze(-1)).amin(-1)
    heights = heights.where(columns > 0, highest).masked_fill(words != columns, 0)
    return heights.long()
