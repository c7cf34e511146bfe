"""Dependency-aware self-attention: scores multiplied by weights falling with tree distance.

Chi, Li, Liu, Xie and Yan, *Dependency-aware self-attention for robust neural machine translation*,
PLoS One 21(2), 2026. We know its abstract and its code, not its equations: the abstract's
"normalized syntactic bias", which modulates the logits element by element, is either our reading of
it, :func:`tree_weights`, or that of the code, :func:`released_tree_weights`. The code's
mode ``mul`` multiplies scores by these weights, its mode ``log`` adds :func:`log_tree_weights`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Num


def tree_weights(
    distances: Num[Tensor, "*batch tokens tokens"], strength: float = 1.0
) -> Float[Tensor, "*batch tokens tokens"]:
    """Return factors of attention scores, falling with tree distance, as we read DASA's paper.

    .. math:: S'_{ij} = S_{ij} (1 + λ e^{−d_{ij}})

    Args:
        distances: d, edges between words, 0 between subwords of a word.
        strength: λ, 0 or more.

    Returns:
        The factors of S, in float32 or wider.
    """
    return 1 + strength * _widen(distances).neg().exp()


def released_tree_weights(
    distances: Num[Tensor, "*batch tokens tokens"],
) -> Float[Tensor, "*batch tokens tokens"]:
    """Return DASA's factors of attention scores, as in the code released by DASA's authors.

    .. math:: w_{ij} = (d_{ij} + 10^{−9})^{−1} / Σ_k (d_{ik} + 10^{−9})^{−1}

    over words k. A word's own inverse distance is 10⁹, so that its own weight is 1, and all others
    are nearly 0: apart from the word itself, a head attends to all words alike, whatever the tree.

    Args:
        distances: as for :func:`tree_weights`.

    Returns:
        The factors of S, in float32 or wider.
    """
    inverse = 1 / (_widen(distances) + 1e-9)
    subwords = (distances == 0).sum(-1, keepdim=True).transpose(-1, -2)
    return inverse / (inverse / subwords).sum(-1, keepdim=True)


def log_tree_weights(
    weights: Float[Tensor, "*batch tokens tokens"], strength: float = 1.0
) -> Float[Tensor, "*batch tokens tokens"]:
    """Return the addend to attention scores of the released DASA code in mode ``log``.

    .. math:: S'_{ij} = S_{ij} + λ log max(w_{ij}, 10^{−9})

    Where weights are above 10⁻⁹, attention is multiplied by `w^λ`, with the released ones by
    `d^{−λ}`. But of those, only the word itself is above: all others have λ log 10⁻⁹ or within
    10⁻⁸ of it, so that the tree does not matter here either.

    Args:
        weights: w, see :func:`released_tree_weights`.
        strength: λ, 0 or more.

    Returns:
        What is added to S, in float32 or wider.
    """
    return strength * _widen(weights).clamp_min(1e-9).log()


def _widen(distances: Num[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    return distances.to(torch.promote_types(distances.dtype, torch.float32))
