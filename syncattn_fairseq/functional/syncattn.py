"""Synchronous syntactic attention: the decoder's dependency head follows the encoder's.

Deguchi, Tamura and Ninomiya, *Synchronous Syntactic Attention for Transformer Neural Machine
Translation*, ACL-IJCNLP SRW 2021. E and D are the bi-affine attentions of encoder and decoder
(:mod:`.dbsa`), C the decoder's attention to the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ._numerics import multiply, widen

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def project_attention(
    source_attention: Float[Tensor, "*#batch source source"],
    cross_attention: Float[Tensor, "*#batch target source"],
    backward_attention: Float[Tensor, "*#batch source target"] | None = None,
) -> Float[Tensor, "*batch target target"]:
    """Project the source's dependency attention onto the target (SyncAttn Eq. 7).

    .. math:: D_mapped = C E Cᵀ

    Args:
        source_attention: E, row = source dependent.
        cross_attention: C, row = target token.
        backward_attention: stands in place of `Cᵀ`, row = source token; the Japanese version of the
            paper (NLP 2021, Eq. 11) normalises over the target here.

    Returns:
        D_mapped, row = target dependent. Its rows do not sum to one.
    """
    if backward_attention is None:
        backward_attention = cross_attention.transpose(-1, -2)
    return multiply(multiply(cross_attention, source_attention), backward_attention)


def sync_attention_loss(
    target_attention: Float[Tensor, "*#batch target target"],
    projected_attention: Float[Tensor, "*#batch target target"],
    padding_mask: Bool[Tensor, "*#batch target"] | None = None,
    causal: bool = True,
) -> Float[Tensor, ""]:
    """Sum squared differences of target and projected dependency attention (SyncAttn Eq. 8-9).

    .. math::
        D' = softmax(D_mapped)
        L_sync = Σ_{t,j} (D'[t, j] − D[t, j])²

    Both the softmax and the sum run over the cells that D can fill: no padding, and no column to
    the right of its row if ``causal``.

    Args:
        target_attention: D, probabilities.
        projected_attention: D_mapped, see :func:`project_attention`.
        padding_mask: True = the token counts neither as row nor as column.
        causal: D is a decoder's.

    Returns:
        The sum.
    """
    size = target_attention.size(-1)
    masked = torch.full((size, size), causal, device=target_attention.device).triu(1)
    if padding_mask is not None:
        masked = masked | padding_mask.unsqueeze(-2) | padding_mask.unsqueeze(-1)

    logits = widen(projected_attention)
    # A row without any cell becomes uniform, not NaN; it is masked out right after.
    logits = logits.masked_fill(masked, torch.finfo(logits.dtype).min)
    difference = (logits.softmax(dim=-1) - widen(target_attention)).masked_fill(masked, 0.0)
    return difference.square().sum()
