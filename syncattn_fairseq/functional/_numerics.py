"""Floating-point helpers for the equations."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def widen(x: Tensor) -> Tensor:
    """Return ``x``, converted to float32 if it is narrower."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def dot_products(query: Tensor, key: Tensor) -> Tensor:
    """Compute the scores of ordinary attention, Q Kᵀ / sqrt(d).

    Args:
        query: Q, ``(..., T, d)``.
        key: K, ``(..., S, d)``.

    Returns:
        ``(..., T, S)``, in float32 or wider.
    """
    return widen(query) @ widen(key).transpose(-1, -2) / math.sqrt(query.size(-1))
