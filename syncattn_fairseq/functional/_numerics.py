"""Floating-point helpers for the equations."""

from __future__ import annotations

import math

import torch
from torch import Tensor


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
    if not torch.is_autocast_enabled(left.device.type):
        return left @ right
    with torch.autocast(left.device.type, enabled=False):
        return left @ right


def dot_products(query: Tensor, key: Tensor) -> Tensor:
    """Compute the scores of ordinary attention, Q Kᵀ / sqrt(d).

    Args:
        query: Q, ``(..., T, d)``.
        key: K, ``(..., S, d)``.

    Returns:
        ``(..., T, S)``, in float32 or wider.
    """
    return multiply(query, key.transpose(-1, -2)) / math.sqrt(query.size(-1))
