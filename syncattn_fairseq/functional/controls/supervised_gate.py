"""Syntax-guided localized self-attention: gates like those of LPSI, but set by a parser.

Hou et al., *Syntax-guided Localized Self-attention by Constituency Syntactic Distance*, Findings of
EMNLP 2022. The distance `d_i` between the words i − 1 and i comes from a tree: it is the height of
the smallest subtree that holds both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from .._gates import sum_left
from .._numerics import widen
from ..sdatt import find_ancestors

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def supervised_log_gates(
    distances: Float[Tensor, "*batch tokens"], temperature: float = 10.0
) -> Float[Tensor, "*batch tokens tokens"]:
    """Compute the logarithm of attention gates from a parser's syntactic distances.

    .. math::
        α(p, d) = (1 + tanh((p − d) / τ)) / 2
        g_{t,i} = Π_{j=i+1}^{t−1} α(d_t, d_j)
        g_{t,i} = Π_{j=t+2}^{i} α(d_{t+1}, d_j)

    for keys i on the left and on the right of the query t: higher boundaries between the words shut
    a gate. The pivot is the boundary next to the query on the key's side, and the factors are those
    of all other boundaries up to the key. So a mirrored sentence has the mirrored gates. A word
    itself and its neighbours have gate 1.

    Args:
        distances: d, between each word and the word before it; the first is not read. NaN =
            unknown, which shuts no gate.
        temperature: τ.

    Returns:
        log g, row = query.
    """
    distances = widen(distances)
    mirrored = distances.flip(-1).roll(1, -1)
    left, right = (_left_log_gates(d, temperature) for d in (distances, mirrored))
    return left + right.flip(-1, -2)


def _left_log_gates(
    distances: Float[Tensor, "*batch tokens"], temperature: float
) -> Float[Tensor, "*batch tokens tokens"]:
    differences = distances.unsqueeze(-1) - distances.unsqueeze(-2)
    factors = F.logsigmoid(2 * differences / temperature)  # (1 + tanh x) / 2 = sigmoid(2 x)
    return sum_left(factors.masked_fill(differences.isnan(), 0.0))


def gap_heights(
    parents: Int[Tensor, "*batch tokens"], words: Int[Tensor, "*batch tokens"]
) -> Int[Tensor, "*batch tokens"]:
    """Return the height of the smallest subtree that holds each word and the word before it.

    The subtree of a word is the word and everything below it; its height is the number of edges
    down to its lowest word.

    Args:
        parents: columns, counted from 0; a root is its own parent.
        words: the column of each token's word: the column of its first subword.

    Returns:
        Int64 numbers: at the first token of a word, the height of the smallest subtree that holds
        this word and the word before it, or of the highest tree if there is no such subtree; 0 at
        other tokens of a word and in the first column.

    Raises:
        ValueError: the parents form a cycle, see :func:`.find_ancestors`.
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
    return heights.masked_fill((words != columns) | (columns == 0), 0).long()
