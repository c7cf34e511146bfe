"""Dependency-based relative positions: how much deeper a key is in the tree than the query.

Omote, Tamura and Ninomiya, *Dependency-Based Relative Positional Encoding for Transformer NMT*,
RANLP 2019: Shaw et al.'s (2018) relative positions, with depths in place of positions.
"""

from torch import Tensor

from .._numerics import dot_products
from .._trees import find_ancestors


def tree_depths(parents: Tensor) -> Tensor:
    """Count the words above each word of a dependency tree.

    Args:
        parents: ``(..., T)`` integer columns; a root is its own parent.

    Returns:
        ``(..., T)`` int64; 0 at each root, if there are several trees.

    Raises:
        ValueError: the parents form a cycle, see :func:`._trees.find_ancestors`.
    """
    return find_ancestors(parents).sum(-1).long() - 1


def relative_depth_scores(query: Tensor, depths: Tensor, embedding: Tensor) -> Tensor:
    """Score every key by its depth relative to the query's; add this to the ordinary scores.

    .. math::
        e_{ij} = q_i (k_j + a_{c(i,j)})ᵀ / √d
        c(i, j) = clip(depth_j − depth_i, −K, K)

    This returns only the part of `e_{ij}` that contains a.

    Args:
        query: q, ``(..., h, T, d)``.
        depths: ``(..., T)`` integers.
        embedding: a, ``(2 K + 1, d)``; row K stands for equal depths.

    Returns:
        ``(..., h, T, T)``, row = query, in float32 or wider.
    """
    limit = embedding.size(0) // 2
    difference = depths.unsqueeze(-2) - depths.unsqueeze(-1)
    index = difference.long().clamp(-limit, limit) + limit
    products = dot_products(query, embedding)
    size = (*products.shape[:-1], index.size(-1))
    return products.gather(-1, index.unsqueeze(-3).expand(size))
