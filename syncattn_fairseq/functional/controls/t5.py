"""Learnt biases for relative positions.

Raffel et al., *Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer*,
JMLR 2020, which adds `b_h[bucket(j − i)]` to the score of query i and key j.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Int

#: Distances from this one on share T5's last bucket.
FURTHEST = 128


def relative_buckets(
    offsets: Int[Tensor, "*shape"],
    causal: bool = False,
    buckets: int = 32,
    furthest: int = FURTHEST,
) -> Int[Tensor, "*shape"]:
    """Map relative positions to the numbers of T5's buckets.

    A side has all buckets if it is the only one (causal), and half of them otherwise. Half of a
    side's buckets hold one distance each, from 0; the others grow logarithmically up to the
    furthest distance, and the last one holds all beyond.

    Args:
        offsets: `j − i`, position of the key minus that of the query.
        causal: keys to the right, which are never seen, share the bucket of distance 0.
        buckets: how many there are, on both sides together.
        furthest: distances from this one on share the last bucket.

    Returns:
        Integers from 0 to ``buckets − 1``.
    """
    if causal:
        side, distances = torch.zeros_like(offsets), (-offsets).clamp_min(0)
    else:
        buckets //= 2
        side, distances = (offsets > 0) * buckets, offsets.abs()
    exact = buckets // 2
    # Distances below `exact`, whose logarithm is not used, are raised to it.
    growth = (distances.clamp_min(exact) / exact).log() / math.log(furthest / exact)
    # Where the exact number is whole, a device's logarithms may come out just below it.
    coarse = exact + (growth * (buckets - exact) + 1e-4).long()
    return side + torch.where(distances < exact, distances, coarse.clamp_max(buckets - 1))
