"""Attention gates as sums of logarithms, for the equations of LPSI and of Hou et al."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from ._numerics import multiply, widen

if TYPE_CHECKING:
    from jaxtyping import Float

#: Value of a shut gate: negligible next to a gate of 1, but with a finite logarithm.
SHUT_GATE = torch.finfo(torch.float32).tiny
#: Logarithm of the value of a shut gate, -87.
SHUT = math.log(SHUT_GATE)


def gate_pivots(
    distances: Float[Tensor, "*shape"], temperature: float
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """Return `(τ d_t + 1) / 2` and `τ d_j / 2`, whose clamped difference is α of LPSI Eq. 5."""
    half = widen(distances) * (temperature / 2)
    return half + 0.5, half


def gate_log_factors(
    pivot: Float[Tensor, "*#shape"], between: Float[Tensor, "*#shape"]
) -> Float[Tensor, "*shape"]:
    """Return log α of LPSI Eq. 5, given both results of :func:`gate_pivots`; ``SHUT`` if α is 0."""
    return F.hardtanh(pivot - between, SHUT_GATE, 1.0).log()


def sum_between(
    log_factors: Float[Tensor, "*batch tokens tokens"], causal: bool = False
) -> Float[Tensor, "*batch tokens tokens"]:
    """Sum the log factors of the words between query and key: the log gates of LPSI Eq. 5.

    Args:
        log_factors: `log α_{j,t}`, row = query t, column = j.
        causal: gates to the right of the query are 0.

    Returns:
        log g, row = query; ``SHUT`` or less for 0.
    """
    size = log_factors.size(-1)
    before = log_factors.new_ones(size, size).tril(-1)  # [a, b]: 1 if b < a
    after = before.transpose(0, 1)
    if causal:
        return sum_left(log_factors).add(after, alpha=SHUT)
    # On the right, sum over the j after t that i is after: the same product does both.
    between = torch.cat([before, after])
    on_sides = log_factors.unsqueeze(-2) * between.view(2, size, size).transpose(0, 1)
    return multiply(on_sides.flatten(-2), between)


def sum_left(
    log_factors: Float[Tensor, "*batch tokens tokens"],
) -> Float[Tensor, "*batch tokens tokens"]:
    """Compute :func:`sum_between` for keys to the left of the query, and 0 for other keys."""
    size = log_factors.size(-1)
    before = log_factors.new_ones(size, size).tril(-1)
    return multiply(log_factors * before, before)  # sum over the j before t that i is before
