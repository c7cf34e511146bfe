"""Linguistically-informed self-attention: an attention head used as a deep bi-affine parser.

Strubell et al., *Linguistically-Informed Self-Attention for Semantic Role Labeling*, EMNLP 2018,
as adapted for translation by Bugliarello and Okazaki (ACL 2020). Their Eq. 2, before the softmax,
is :func:`.biaffine_scores` of rectified projections φ:

.. math:: A = softmax(φ(Q) U φ(K)ᵀ / √d)

LISA does not scale by `√d`; we do, as for every other head: U can absorb the factor, and starts at
the same size. Its authors' code, and that of PASCAL, also have a prior for each head (``key_bias``
there), which is not in the equation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn import functional as F

if TYPE_CHECKING:
    from jaxtyping import Float

#: Slope for negative inputs, as in Dozat and Manning's parser (ICLR 2017).
LEAKY_SLOPE = 0.1


def rectify(projected: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Apply LISA's φ, a leaky ReLU with slope 0.1."""
    return F.leaky_relu(projected, LEAKY_SLOPE)
