"""Parent-scaled self-attention: every token looks around its parent's position.

Bugliarello and Okazaki, *Enhancing Machine Translation with Dependency-Aware Self-Attention*,
ACL 2020. `p_t` is the position of token t's parent, the middle of the parent's subwords.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ._numerics import dot_products, widen

if TYPE_CHECKING:
    from jaxtyping import Float


def parent_scaled_scores(
    query: Float[Tensor, "*#batch queries width"],
    key: Float[Tensor, "*#batch keys width"],
    parent_weights: Float[Tensor, "*#batch queries keys"],
) -> Float[Tensor, "*batch queries keys"]:
    """Multiply attention scores by a density around the query's parent (PASCAL Eq. 1).

    .. math:: N = (Q Kᵀ / √d) ⊙ D

    Args:
        query: Q, of width d.
        key: K.
        parent_weights: D, see :func:`parent_gaussian`.

    Returns:
        N, to be masked and normalised.
    """
    return dot_products(query, key) * parent_weights


def parent_gaussian(
    parents: Float[Tensor, "*batch tokens"], length: int, std: float = 1.0
) -> Float[Tensor, "*batch tokens {length}"]:
    """Return the normal density of every column around each token's parent (PASCAL Eq. 2).

    .. math:: D[t, j] = exp(−(j − p_t)² / (2 σ²)) / √(2 π σ²)

    Args:
        parents: p, columns counted from 0, maybe between two; NaN = no parent.
        length: the number of columns.
        std: σ, in columns. 0 keeps only the parent (Table 3b): 1 in its column, or 1/2 in each of
            the two columns that it is between, and 0 elsewhere.

    Returns:
        D; ones in the row of a token without a parent.
    """
    parents = widen(parents).unsqueeze(-1)
    columns = torch.arange(length, dtype=parents.dtype, device=parents.device)
    if std == 0:
        density = (1 - (columns - parents).abs()).clamp_min(0)
    else:
        density = torch.exp(-((columns - parents) ** 2) / (2 * std**2)) * density_peak(std)
    return density.masked_fill(parents.isnan(), 1.0)


def density_peak(std: float = 1.0) -> float:
    """Return the largest value of :func:`parent_gaussian`: the density at the parent's position."""
    return 1.0 if std == 0 else 1 / (math.sqrt(2 * math.pi) * std)
