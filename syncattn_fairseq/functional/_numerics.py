"""Floating-point helpers for the equations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

#: Lower bound of probabilities in losses, whose gradients divide by them.
LEAST = 1e-30


def widen(x: Tensor) -> Tensor:
    """Return ``x``, converted to float32 if it is narrower."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """Return the matrix product of two tensors, in float32 or wider, also under autocast.

    If their types differ, the wider one holds: a model in float64 still returns its cross-attention
    in float32.
    """
    left, right = widen(left), widen(right)
    wider = torch.promote_types(left.dtype, right.dtype)
    left, right = left.to(wider), right.to(wider)
    device = left.device.type
    if not (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)):
        return left @ right
    with torch.autocast(device, enabled=False):
        return left @ right


def dot_products(
    query: Float[Tensor, "*#batch queries width"], key: Float[Tensor, "*#batch keys width"]
) -> Float[Tensor, "*batch queries keys"]:
    """Compute scaled dot products, Q Kᵀ / sqrt(d) for vectors of width d, in float32 or wider."""
    return multiply(query, key.transpose(-1, -2)) / math.sqrt(query.size(-1))


def multiply_by_head(
    x: Float[Tensor, "*#batch tokens inputs"], weight: Float[Tensor, "*#batch inputs outputs"]
) -> Float[Tensor, "*batch tokens outputs"]:
    """Multiply each sentence's states by one matrix per attention head, in float32 or wider.

    The sentences become rows of one product for each head. :func:`multiply` would copy the weights
    for every sentence. Weights usually have one leading dimension, the heads, and x has another
    before it, the sentences.
    """
    sentences = x.dim() - weight.dim()
    if sentences <= 0:
        return multiply(x, weight)
    first, beside_words = range(sentences), range(-1 - sentences, -1)
    rows = x.movedim(tuple(first), tuple(beside_words))
    product = multiply(rows.flatten(-2 - sentences, -2), weight)
    product = product.unflatten(-2, rows.shape[-2 - sentences : -1])
    return product.movedim(tuple(beside_words), tuple(first))
