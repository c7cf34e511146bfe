"""Attention with linear biases: the further away a key is, the lower its score.

Press, Smith and Lewis, *Train Short, Test Long: Attention with Linear Biases Enables Input Length
Extrapolation*, ICLR 2022.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .._numerics import widen

if TYPE_CHECKING:
    from jaxtyping import Float, Num


def alibi_slopes(heads: int) -> Float[Tensor, "{heads}"]:
    """Return ALiBi's slope of each attention head.

    .. math:: m_h = 2^{−8 h / H}, h = 1 … H

    If H is not a power of two, the first slopes are those of the next lower power of two, and the
    others are every second one of twice as many heads, from the first on, as in the authors' code.

    Args:
        heads: H.

    Returns:
        m.
    """
    power = 1 << (heads.bit_length() - 1)  # the largest power of two up to H
    slopes = 2.0 ** (-8 / power * torch.arange(1, power + 1))
    between = 2.0 ** (-4 / power * torch.arange(1, 2 * power + 1, 2))
    return torch.cat([slopes, between[: heads - power]])


def linear_biases(
    distances: Num[Tensor, "*batch queries keys"], slopes: Float[Tensor, "heads"]
) -> Float[Tensor, "*batch heads queries keys"]:
    """Return ALiBi's addend to each score: minus the head's slope times the distance.

    .. math:: −m_h · distance_{ij}

    Args:
        distances: 0 or more; in the paper `|i − j|`.
        slopes: m.

    Returns:
        The biases, in float32 or wider.
    """
    return -widen(slopes)[:, None, None] * distances.unsqueeze(-3)
