"""Rotary position embedding: scores depend only on the distance of query and key.

Su et al., *RoFormer: Enhanced Transformer with Rotary Position Embedding*, 2021 (arXiv 2104.09864).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Complex, Float, Num


def rotary_angles(
    positions: Num[Tensor, "tokens"], width: int
) -> Float[Tensor, "tokens {width}//2"]:
    """Return the rotation angle of each pair of dimensions at each position.

    .. math:: θ_{m,k} = m · 10000^{−2 k / d}, k = 0 … d/2 − 1

    Args:
        positions: m.
        width: d, even.

    Returns:
        θ, in radians, float32 or the wider type of ``positions``.
    """
    wide = torch.promote_types(positions.dtype, torch.float32)
    exponents = torch.arange(0, width, 2, device=positions.device, dtype=wide) / width
    return positions.to(wide).unsqueeze(-1) * 10000.0**-exponents


def rotate(
    states: Float[Tensor, "*batch tokens width"], angles: Float[Tensor, "tokens pairs"]
) -> Float[Tensor, "*batch tokens width"]:
    """Rotate queries or keys by angles growing with their positions (RoFormer Eq. 34).

    Neighbouring dimensions form a pair.

    .. math::
        x'_{2k} = x_{2k} cos θ_k − x_{2k+1} sin θ_k
        x'_{2k+1} = x_{2k} sin θ_k + x_{2k+1} cos θ_k

    As complex numbers, :math:`x'_{2k} + i x'_{2k+1} = (x_{2k} + i x_{2k+1}) e^{i θ_k}`.

    The dot product of a turned query and a turned key depends on their positions only through the
    difference.

    Args:
        states: x.
        angles: θ, see :func:`rotary_angles`.

    Returns:
        x', of the type of ``states``.
    """
    return rotate_by(states, unit_complex(angles))


def unit_complex(angles: Float[Tensor, "*shape"]) -> Complex[Tensor, "*shape"]:
    """Return the complex numbers e^{iθ} of angles θ, in complex64 or wider."""
    return torch.complex(angles.cos(), angles.sin())


def rotate_by(
    states: Float[Tensor, "*batch tokens width"], turns: Complex[Tensor, "tokens pairs"]
) -> Float[Tensor, "*batch tokens width"]:
    """Compute :func:`rotate`, given e^{iθ} in place of the angles θ.

    This is one product, in float32 or wider.
    """
    wide = torch.promote_types(states.dtype, torch.float32)
    pairs = states.to(wide, memory_format=torch.contiguous_format).unflatten(-1, (-1, 2))
    turned = torch.view_as_real(torch.view_as_complex(pairs) * turns)
    return turned.flatten(-2).to(states.dtype)
