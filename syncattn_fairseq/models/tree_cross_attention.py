"""A Transformer's cross-attention with some syntax-directed heads."""

from dataclasses import dataclass
from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from ..base.errors import DataError
from ..base.option_fields import option
from ..data.fields import NOTHING, TREE_DISTANCES, SourceFields
from ..functional import distances_from, syntax_directed_scores
from ..modules.batch_view import BatchView
from ..modules.layer_numbers import check_range, count_trained_layers, read_layer
from ..modules.part import Part, register_part
from ..modules.source_attention import PositionPredictor, Source


@dataclass
class TreeWindowOptions:
    """Syntax-directed heads (SDAtt): where they are and how far they see."""

    cross_attention_tree_window: int = option(
        0,
        "radius, in edges of the source's dependency tree, within which the cross-attention's "
        "syntax-directed heads see words (SDAtt: 4; 0 = no such heads)",
        at_least=0,
    )
    cross_attention_tree_layer: int = option(0, "decoder layer with these heads (0 = the top one)")
    cross_attention_tree_heads: int = option(
        0, "number of these heads (0 = half of the layer's heads)"
    )


@register_part("tree_window")
class TreeCrossAttention(Part, MultiheadAttention):
    """fairseq's cross-attention with first heads limited to a window in the source's tree.

    Their scores are SDAtt's (Eq. 10-11) with scaled dot products in place of e. They share one
    position, predicted from the layer's state.

    Args:
        tree_heads: how many of the first heads are syntax-directed.
        tree_window: n, in edges.
    """

    Options = TreeWindowOptions

    def __init__(
        self, *args: Any, view: BatchView, tree_heads: int, tree_window: int, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.view = view
        self.tree_heads = tree_heads
        self.tree_window = tree_window
        self.position = PositionPredictor(self.embed_dim)

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Check that the layer and the heads exist and are free."""
        read_layer(cfg, "cross_attention_tree_layer", "decoder")
        heads = cfg.decoder.attention_heads
        explanation = f"the decoder has {heads} heads a layer"
        check_range(cfg, "cross_attention_tree_heads", 0, heads, explanation)
        if cfg.sync_backward == "softmax" and cls.stands_in(cfg, cfg.sync_layer):
            raise DataError(
                f"--cross-attention-tree-layer {cfg.sync_layer}: not in the sync layer if "
                "--sync-backward is softmax; choose another"
            )

    @classmethod
    def stands_in(cls, cfg: Any, layer: int) -> bool:
        """Tell whether a decoder layer, counted from 1, has this cross-attention."""
        chosen = cfg.cross_attention_tree_layer or count_trained_layers(cfg, "decoder")
        return cfg.cross_attention_tree_window > 0 and layer == chosen

    @classmethod
    def list_arguments(cls, cfg: Any) -> dict[str, Any]:
        """Return the constructor's arguments from the options."""
        half = max(1, cfg.decoder.attention_heads // 2)
        return {
            "tree_heads": cfg.cross_attention_tree_heads or half,
            "tree_window": cfg.cross_attention_tree_window,
        }

    @classmethod
    def list_fields(cls, cfg: Any) -> SourceFields:
        """Ask for the distances in the tree."""
        if not cfg.cross_attention_tree_window:
            return NOTHING
        return SourceFields(fields=frozenset([TREE_DISTANCES]))

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        key_padding_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend as fairseq does.

        Args:
            query, key, value: fairseq's, ``(T, B, D)`` and ``(S, B, D)``.
            key_padding_mask: ``(B, S)``, True = padding.
        """
        distances = self.view.require(TREE_DISTANCES.name, reader="cross-attention")
        if key_padding_mask is None:
            key_padding_mask = torch.zeros_like(distances[:, 0], dtype=torch.bool)
        self._source = Source(key_padding_mask, distances)
        self._state = query.transpose(0, 1)
        kwargs["static_kv"] = True  # else fairseq may take a fused kernel, which has no hook
        attended = super().forward(query, key, value, key_padding_mask=key_padding_mask, **kwargs)
        del self._source, self._state
        return attended

    def apply_sparse_mask(
        self, attn_weights: Tensor, tgt_len: int, src_len: int, bsz: int
    ) -> Tensor:
        """Scale and mask the scores of the first heads, ``(B H, T, S)``: fairseq's own hook.

        Args:
            attn_weights: the scores, ``(B H, T, S)``.
            tgt_len, src_len: T and S.
            bsz: B.
        """
        scores = attn_weights.view(bsz, self.num_heads, tgt_len, src_len)
        near, rest = scores.split([self.tree_heads, self.num_heads - self.tree_heads], dim=1)
        near = near.masked_fill(self._source.padding_mask[:, None, None], -torch.inf)
        near = syntax_directed_scores(near, self._distances(), self.tree_window)
        return torch.cat([near.type_as(rest), rest], dim=1).view_as(attn_weights)

    def _distances(self) -> Tensor:
        """Return the distances, ``(B, 1, T, S)``, by which scores fade."""
        source = self._source
        assert source.tree_distances is not None  # forward requires them
        position = self.position(self._state, source)
        self.view.notes["positions"] = position.detach()
        return distances_from(source.columns(position), source.tree_distances).unsqueeze(1)
