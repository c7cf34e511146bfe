"""Latent phrase structure: syntactic distances that gate attention, and their synchronisation.

Harada and Watanabe, *Neural Machine Translation with Synchronous Latent Phrase Structure*,
ACL-IJCNLP SRW 2021. `d_i` is the syntactic distance between the words i − 1 and i, which is large
between constituents; `e` is the same on the source side.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from ._gates import SHUT_GATE, gate_log_factors, gate_pivots, sum_between
from ._numerics import multiply, multiply_by_head, widen

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def syntactic_distances(
    keys: Float[Tensor, "*#batch tokens width"],
    weight: Float[Tensor, "*#batch span width"],
    bias: Float[Tensor, "*#batch"],
) -> Float[Tensor, "*batch tokens"]:
    """Compute the syntactic distance between each word and the word before it (LPSI Eq. 4).

    .. math:: d_i = tanh(W [k_{i−M} … k_i] + b)

    Args:
        keys: k; zeros are assumed before the first.
        weight: W; its last row, the M + 1-th, multiplies `k_i`.
        bias: b.

    Returns:
        d.
    """
    span = weight.size(-2)
    products = multiply_by_head(keys, weight.transpose(-1, -2)).transpose(-1, -2)
    # Row m, w_m k_j, belongs M - m columns farther to the right. In a table that is one column
    # wider, every row begins one column farther to the left than the row above it.
    padded = F.pad(products, (span - 1, 0, 0, 1)).flatten(-2)
    width = products.size(-1) + span
    shifted = padded[..., : span * width].unflatten(-1, (span, width))
    total = shifted.sum(-2)[..., : width - span]
    return torch.tanh(total + widen(bias).unsqueeze(-1))


def distance_gates(
    distances: Float[Tensor, "*batch tokens"], temperature: float = 1.0, causal: bool = False
) -> Float[Tensor, "*batch tokens tokens"]:
    """Compute attention gates of 0 to 1, shut by constituent boundaries between words (LPSI Eq. 5).

    .. math::
        α_{j,t} = (hardtanh(τ (d_t − d_j)) + 1) / 2
        g_{t,i} = Π_{j=i+1}^{t−1} α_{j,t}

    for i < t, t being the query. This is all that the decoder needs, and all that the paper says.
    For keys to the right, the factors are again those of the words in between: `g_{t,i} =
    Π_{j=t+1}^{i−1} α_{j,t}`. Its pivot is `d_t`, too, as in the authors' code, whose products also
    have the key's own factor. That is not the mirror image of the left side, whose pivot would be
    `d_{t+1}`: see :func:`.supervised_log_gates`. A word itself and its neighbours have gate 1.

    Args:
        distances: d.
        temperature: τ.
        causal: gates to the right of the query are 0.

    Returns:
        g, row = query.
    """
    gates = log_gates(distances, temperature, causal).exp()
    return F.threshold(gates, 2 * SHUT_GATE, 0.0)


def log_gates(
    distances: Float[Tensor, "*batch tokens"], temperature: float = 1.0, causal: bool = False
) -> Float[Tensor, "*batch tokens tokens"]:
    """Compute the logarithm of :func:`distance_gates`, an addend to attention scores.

    Products become sums, whose gradients are also sums. A gate with a saturated factor, α = 0 or
    1, passes no gradient to it, since a saturated hardtanh has none.

    Returns:
        log g, row = query; ``SHUT`` or less for 0.
    """
    pivot, between = gate_pivots(distances, temperature)
    return sum_between(gate_log_factors(pivot.unsqueeze(-1), between.unsqueeze(-2)), causal)


def gated_attention(
    attention: Float[Tensor, "*#batch queries keys"], gates: Float[Tensor, "*#batch queries keys"]
) -> Float[Tensor, "*batch queries keys"]:
    """Multiply attention probabilities by gates, and normalise them again (LPSI Eq. 6).

    .. math:: ã_{t,i} = g_{t,i} a_{t,i} / Σ_j g_{t,j} a_{t,j}

    which is softmax(scores + log g) for a = softmax(scores).

    Args:
        attention: a, probabilities.
        gates: g.

    Returns:
        ã; zeros in a row all of whose attention is behind shut gates.
    """
    passed = widen(attention) * widen(gates)
    return passed / passed.sum(-1, keepdim=True).clamp_min(torch.finfo(passed.dtype).tiny)


def sync_mse_loss(
    distances: Float[Tensor, "*#batch tokens"],
    projected: Float[Tensor, "*#batch tokens"],
    padding_mask: Bool[Tensor, "*#batch tokens"] | None = None,
) -> Float[Tensor, ""]:
    """Sum squared differences of the target's and the projected syntactic distances (LPSI Eq. 7).

    .. math:: L_mse = Σ_i (d_i − d̃_i)²

    Args:
        distances: d.
        projected: d̃, see :func:`project_distances`.
        padding_mask: True = the word does not count.

    Returns:
        The sum.
    """
    squares = F.mse_loss(widen(distances), widen(projected), reduction="none")
    if padding_mask is not None:
        squares = squares.masked_fill(padding_mask, 0.0)
    return squares.sum()


def project_distances(
    source_distances: Float[Tensor, "*#batch source"],
    cross_attention: Float[Tensor, "*#batch target source"],
) -> Float[Tensor, "*batch target"]:
    """Project the source's syntactic distances onto the target by cross-attention (LPSI Eq. 8).

    .. math:: d̃ = C e

    Args:
        source_distances: e.
        cross_attention: C, row = target word.

    Returns:
        d̃.
    """
    return multiply(cross_attention, source_distances.unsqueeze(-1)).squeeze(-1)


def sync_rank_loss(
    distances: Float[Tensor, "*#batch tokens"],
    projected: Float[Tensor, "*#batch tokens"],
    padding_mask: Bool[Tensor, "*#batch tokens"] | None = None,
    margin: float = 1.0,
) -> Float[Tensor, ""]:
    """Compute a ranking hinge loss of target and projected syntactic distances (LPSI Eq. 10).

    .. math:: L_rank = Σ_{i<j} max(0, 1 − sign(d_i − d_j) (d̃_i − d̃_j))

    Args:
        distances: d, which get no gradient from this loss.
        projected: d̃, see :func:`project_distances`.
        padding_mask: True = the word is in no pair.
        margin: replaces the equation's 1.

    Returns:
        The sum over all pairs.
    """
    distances, projected = widen(distances.detach()), widen(projected)
    inverse_order = (distances.unsqueeze(-2) - distances.unsqueeze(-1)).sign()
    difference = projected.unsqueeze(-1) - projected.unsqueeze(-2)
    hinges = F.relu(inverse_order * difference + margin)
    size = hinges.size(-1)
    counted = torch.ones(size, size, dtype=torch.bool, device=hinges.device).triu(1)
    if padding_mask is not None:
        counted = ~(padding_mask.unsqueeze(-1) | padding_mask.unsqueeze(-2)) & counted
    return hinges.masked_fill(~counted, 0.0).sum()


# One step of decoding.


def last_syntactic_distance(
    keys: Float[Tensor, "*#batch tokens width"],
    weight: Float[Tensor, "*#batch span width"],
    bias: Float[Tensor, "*#batch"],
) -> Float[Tensor, "*batch"]:
    """Compute the last token's :func:`syntactic_distances`, for one decoding step, in O(1)."""
    seen = widen(keys[..., -weight.size(-2) :, :])
    products = seen * widen(weight)[..., -seen.size(-2) :, :]
    return torch.tanh(products.sum((-1, -2)) + widen(bias))


def log_gates_of_last(
    distances: Float[Tensor, "*batch tokens"], temperature: float = 1.0
) -> Float[Tensor, "*batch tokens"]:
    """Compute the last row of :func:`log_gates`, for one step of decoding, in O(T)."""
    pivot, between = gate_pivots(distances, temperature)
    factors = gate_log_factors(pivot[..., -1:], between)
    left = factors[..., :-1].flip(-1).cumsum(-1).flip(-1)
    return F.pad(left[..., 1:], (0, min(2, distances.size(-1))))


# The control.


def constant_log_gates(
    offsets: Int[Tensor, "*shape"], dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*shape"]:
    """Compute LPSI's log gates if all syntactic distances are 0, as before training.

    .. math:: log g_{t,i} = −log 2 · max(0, |t − i| − 1)

    Every factor of Eq. 5 is then 1/2: attention decays with the distance, neighbours are free. LPSI
    starts like this, and this is its control.

    Args:
        offsets: `i − t`.
        dtype: of the result.

    Returns:
        log g.
    """
    return -math.log(2) * (offsets.abs() - 1).clamp_min(0).to(dtype)
