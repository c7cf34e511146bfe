"""Cross-attention of a Transformer of which some heads are syntax-directed."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from ..functional import distances_from, syntax_directed_scores
from .source_attention import PositionPredictor, Source


class TreeCrossAttention(MultiheadAttention):
    """fairseq's cross-attention whose first heads see what is near in the source's tree.

    Their scores are SDAtt's (Eq. 10-11) with the scaled dot products in the place of e; all of them
    share the expected position, which is predicted from the layer's state.

    Args:
        tree_heads: how many heads, counted from the first.
        tree_window: n, in edges.
        *args, **kwargs: as for :class:`fairseq.modules.MultiheadAttention`.
    """

    #: (B, S, S); set for one forward pass by the decoder.
    tree_distances: Tensor

    def __init__(self, *args: Any, tree_heads: int, tree_window: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tree_heads = tree_heads
        self.tree_window = tree_window
        self.position = PositionPredictor(self.embed_dim)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        key_padding_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend as fairseq does."""
        padding_mask = key_padding_mask
        if padding_mask is None:
            padding_mask = torch.zeros_like(self.tree_distances[:, 0], dtype=torch.bool)
        position = self.position(query.transpose(0, 1), Source(padding_mask))
        self._distances = distances_from(position, self.tree_distances)
        kwargs["static_kv"] = True  # else a fused kernel may be taken, which has no hook
        return super().forward(query, key, value, key_padding_mask=key_padding_mask, **kwargs)

    def apply_sparse_mask(
        self, attn_weights: Tensor, tgt_len: int, src_len: int, bsz: int
    ) -> Tensor:
        """Scale and mask the scores of the first heads, ``(B H, T, S)``: fairseq's own hook."""
        scores = attn_weights.view(bsz, self.num_heads, tgt_len, src_len)
        near, rest = scores.split([self.tree_heads, self.num_heads - self.tree_heads], dim=1)
        near = syntax_directed_scores(near, self._distances.unsqueeze(1), self.tree_window)
        return torch.cat([near.type_as(rest), rest], dim=1).view_as(attn_weights)
