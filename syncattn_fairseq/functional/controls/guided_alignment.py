"""Guided alignment: cross-attention trained on given word alignments.

Garg, Peitz, Nallasamy and Paulik, *Jointly Learning to Align and Translate with Transformer
Models*, EMNLP 2019; Chen et al., *Guided Alignment Training for Topic-Aware Neural Machine
Translation*, AMTA 2016.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from .._numerics import LEAST, widen

if TYPE_CHECKING:
    from jaxtyping import Float, Num


def guided_alignment_loss(
    attention: Float[Tensor, "*#batch target source"], links: Num[Tensor, "*#batch target source"]
) -> Float[Tensor, ""]:
    """Compute the cross-entropy of cross-attention with word alignments (Garg et al., Eq. 5).

    .. math:: L = −Σ_t Σ_s G_{ts} log A_{ts}

    G has the links, each row divided by its sum. The paper divides by the target's length; here the
    criterion does, as for the translation.

    Args:
        attention: A, probabilities.
        links: 1 for a link and 0 for none; rows without links do not count.

    Returns:
        The sum, in float32 or wider. A probability below 1e-30 (in float16, 6e-5) counts
        as that number.
    """
    links = links.to(torch.promote_types(attention.dtype, torch.float32))
    weights = links / links.sum(-1, keepdim=True).clamp_min(1)
    least = max(torch.finfo(attention.dtype).tiny, LEAST)
    return -(weights * widen(F.threshold(attention, least, least)).log()).sum()
