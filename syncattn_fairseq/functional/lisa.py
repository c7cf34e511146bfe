"""Linguistically-informed self-attention: a head that is a deep bi-affine parser.

Strubell et al., *Linguistically-Informed Self-Attention for Semantic Role Labeling*, EMNLP 2018,
as adapted for translation by Bugliarello and Okazaki (ACL 2020).
"""

from torch import Tensor
from torch.nn import functional as F

from .dbsa import biaffine_scores

#: Slope for negative inputs, as in Dozat and Manning's parser (ICLR 2017).
LEAKY_SLOPE = 0.1


def parser_scores(
    query: Tensor, key: Tensor, weight: Tensor, key_bias: Tensor | None = None
) -> Tensor:
    """Score every key as the head of every query (LISA Eq. 2, before the softmax).

    .. math:: A = softmax(φ(Q) U φ(K)ᵀ / √d)

    with φ the leaky rectifier. LISA does not scale by `√d`; we do, as for every other
    head: U can absorb the factor, and starts at the same size. Its authors' code, and that of
    PASCAL, also have a prior for each head (``key_bias``), which is not in the equation.

    Args:
        query: projections of the dependents, ``(..., T, d)``.
        key: projections of the heads, ``(..., S, d)``.
        weight: U, ``(..., d, d)``.
        key_bias: as for :func:`.dbsa.biaffine_scores`.

    Returns:
        ``(..., T, S)`` scores.
    """
    return biaffine_scores(rectify(query), rectify(key), weight, key_bias)


def rectify(projected: Tensor) -> Tensor:
    """Apply φ, the leaky rectifier."""
    return F.leaky_relu(projected, LEAKY_SLOPE)
