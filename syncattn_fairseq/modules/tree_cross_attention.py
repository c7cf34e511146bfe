"""Cross-attention of a Transformer of which some heads are syntax-directed."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from ..functional import distances_from, expected_distances, syntax_directed_scores
from .source_attention import PositionPredictor, Source


class TreeCrossAttention(MultiheadAttention):
    """fairseq's cross-attention whose first heads see what is near in the source's tree.

    Their scores are SDAtt's (Eq. 10-11) with the scaled dot products in the place of e.

    Args:
        tree_heads: how many heads, counted from the first.
        tree_window: n, in edges.
        tree_position: ``predicted``: all of them share a position, which is predicted from the
            layer's state. ``expected``: each has its own distances, the mean of all words',
            weighted by its softmax without a window; nothing is predicted.
        *args, **kwargs: as for :class:`fairseq.modules.MultiheadAttention`.
    """

    #: (B, S, S); set for one forward pass by the decoder.
    tree_distances: Tensor
    #: p of the last forward pass, (B, T), counted from the first token; None where not predicted.
    positions: Tensor | None = None

    def __init__(
        self,
        *args: Any,
        tree_heads: int,
        tree_window: int,
        tree_position: str = "predicted",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.tree_heads = tree_heads
        self.tree_window = tree_window
        predicts = tree_position == "predicted"
        self.position = PositionPredictor(self.embed_dim) if predicts else None

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        key_padding_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend as fairseq does."""
        if key_padding_mask is None:
            key_padding_mask = torch.zeros_like(self.tree_distances[:, 0], dtype=torch.bool)
        self._source = Source(key_padding_mask, self.tree_distances)
        self._state = query.transpose(0, 1)
        kwargs["static_kv"] = True  # else a fused kernel may be taken, which has no hook
        attended = super().forward(query, key, value, key_padding_mask=key_padding_mask, **kwargs)
        del self._source, self._state
        return attended

    def apply_sparse_mask(
        self, attn_weights: Tensor, tgt_len: int, src_len: int, bsz: int
    ) -> Tensor:
        """Scale and mask the scores of the first heads, ``(B H, T, S)``: fairseq's own hook."""
        scores = attn_weights.view(bsz, self.num_heads, tgt_len, src_len)
        near, rest = scores.split([self.tree_heads, self.num_heads - self.tree_heads], dim=1)
        near = near.masked_fill(self._source.padding_mask[:, None, None], -torch.inf)
        near = syntax_directed_scores(near, self._distances(near), self.tree_window)
        return torch.cat([near.type_as(rest), rest], dim=1).view_as(attn_weights)

    def _distances(self, scores: Tensor) -> Tensor:
        """Return the distances that fade ``(B, h, T, S)`` scores out, ``(B, h or 1, T, S)``."""
        distances = self.tree_distances
        if self.position is None:
            return expected_distances(scores, distances.unsqueeze(1))
        position = self.position(self._state, self._source)
        self.positions = position.detach()
        return distances_from(self._source.columns(position), distances).unsqueeze(1)
