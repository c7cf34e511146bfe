"""Learnt biases in place of position embeddings (T5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...functional import relative_buckets
from ..batch_view import BatchView
from .positions import Positions, offsets, register_positions

if TYPE_CHECKING:
    from jaxtyping import Float

#: Number of buckets of relative positions, as in T5.
BUCKETS = 32


@register_positions("bias")
class BiasPositions(Positions):
    """A learnt bias for each head and each of 32 buckets of relative positions.

    It differs from T5 in three ways: each layer has biases of its own, where T5's layers share
    them; dot products are divided by `√d` as usual, which T5 does not do; and biases start at 0.
    """

    def __init__(self, heads: int, head_dim: int, view: BatchView, causal: bool) -> None:
        super().__init__(heads, head_dim, view, causal)
        self.weight = nn.Parameter(torch.zeros(BUCKETS, heads))

    def bias(
        self, rows: int, columns: int, device: torch.device
    ) -> Float[Tensor, "{self.heads} {rows} {columns}"]:
        """Return the learnt bias of each head for each pair of query and key."""
        buckets = self.share(
            (rows, columns),
            lambda: relative_buckets(offsets(rows, columns, device), self.causal, BUCKETS),
        )
        return F.embedding(buckets, self.weight).permute(2, 0, 1)
