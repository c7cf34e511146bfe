"""Dependency-aware self-attention: scores multiplied by weights that fall with tree distances.

Chi, Li, Liu, Xie and Yan, *Dependency-aware self-attention for robust neural machine translation*,
PLoS One 21(2), 2026. We know its abstract and its code, not its equations: the abstract's
"normalized syntactic bias", which modulates the logits element by element, is either our reading of
it, :func:`tree_weights`, or that of the code, :func:`released_tree_weights`.
"""

import torch
from torch import Tensor


def tree_weights(distances: Tensor, strength: float = 1.0) -> Tensor:
    """Weigh scores by the distance in the tree, in our reading.

    .. math:: S'_{ij} = S_{ij} (1 + λ e^{−d_{ij}})

    Args:
        distances: d, ``(..., T, T)`` edges between words, 0 between subwords of a word.
        strength: λ, 0 or more.

    Returns:
        The factors of S, ``(..., T, T)`` in float32 or wider.
    """
    return 1 + strength * _widen(distances).neg().exp()


def released_tree_weights(distances: Tensor) -> Tensor:
    """Weigh scores by the distance in the tree, as the code does that the paper's authors released.

    .. math:: w_{ij} = (d_{ij} + 10^{−9})^{−1} / Σ_k (d_{ik} + 10^{−9})^{−1}

    over words k. A word's own inverse distance is 10⁹, so that its own weight is 1, and all others
    are nearly 0: apart from the word itself, a head attends to all words alike, whatever the tree.

    Args:
        distances: as for :func:`tree_weights`.

    Returns:
        The factors of S, ``(..., T, T)`` in float32 or wider.
    """
    inverse = 1 / (_widen(distances) + 1e-9)
    subwords = (distances == 0).sum(-1, keepdim=True).transpose(-1, -2)
    return inverse / (inverse / subwords).sum(-1, keepdim=True)


def _widen(distances: Tensor) -> Tensor:
    return distances.to(torch.promote_types(distances.dtype, torch.float32))
