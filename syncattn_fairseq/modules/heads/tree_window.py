"""Syntax-directed heads in a Transformer's cross-attention (SDAtt)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...base.option_fields import option
from ...data.fields import TREE_DISTANCES
from ...functional import distances_from, syntax_directed_scores
from ...functional._numerics import multiply
from ..batch_view import BatchView
from ..layer_numbers import CROSS, check_range, count_trained_layers, list_kept, read_layer
from ..part import Slot, register_part
from ..source_attention import PredictsPosition, Source
from .heads import Heads, Scope

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass
class TreeWindowOptions:
    """Syntax-directed heads (SDAtt): their layer, their number and the size of their window."""

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
class TreeWindowHeads(PredictsPosition, Heads):
    """Cross-attention heads that see only a window in the source's dependency tree (SDAtt).

    Their scores are SDAtt's (Eq. 10-11) with scaled dot products in place of e. They share one
    position, predicted from the layer's state. It is exposed, ``(B, 1, T)``, without gradient.

    Args:
        embed_dim: D, the width of the layer's state.
        window: n, in edges.
    """

    Options = TreeWindowOptions
    title = "syntax-directed"
    rank = "first"
    option = "cross_attention_tree_heads"
    cross_layers = "cross_attention_tree_layer"
    reads = TREE_DISTANCES
    exposes = "positions"
    stored_as = "position"

    def __init__(
        self, count: int, head_dim: int, view: BatchView, embed_dim: int, window: int
    ) -> None:
        super().__init__(count, head_dim, view)
        self.window = window
        self.add_predictor(embed_dim)

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Raise `DataError` if the decoder lacks the chosen layer or the chosen number of heads."""
        read_layer(cfg, "cross_attention_tree_layer", "decoder")
        heads = cfg.decoder.attention_heads
        explanation = f"each decoder layer has {heads} heads"
        check_range(cfg, "cross_attention_tree_heads", 0, heads, explanation)

    @classmethod
    def list_layers(cls, cfg: Any, side: str) -> list[int]:
        """Return the layer with syntax-directed heads in a list, or an empty list for none."""
        if side != CROSS or not cfg.cross_attention_tree_window:
            return []
        chosen = cfg.cross_attention_tree_layer or count_trained_layers(cfg, "decoder")
        return [chosen] if chosen in list_kept(cfg, "decoder") else []

    @classmethod
    def count_heads(cls, cfg: Any, side: str, free: int) -> int:
        """Return ``--cross-attention-tree-heads``, by default half of the layer's heads."""
        half = max(1, cfg.decoder.attention_heads // 2)
        return cfg.cross_attention_tree_heads or half

    @classmethod
    def build(cls, cfg: Any, slot: Slot) -> TreeWindowHeads:
        """Build a layer's syntax-directed heads from the model's options."""
        window = cfg.cross_attention_tree_window
        return cls(slot.count, slot.head_dim, slot.view, slot.embed_dim, window)

    def attend(
        self,
        query: Float[Tensor, "batch heads rows width"],
        key: Float[Tensor, "batch heads tokens width"],
        value: Float[Tensor, "batch heads tokens outputs"],
        scope: Scope,
    ) -> Float[Tensor, "batch heads rows outputs"]:
        """Attend to source words near the predicted word in the dependency tree.

        Args:
            query, key, value, scope: as for :meth:`.Heads.attend`.
        """
        assert scope.x is not None and scope.padding_mask is not None  # the attention sets them
        source = Source(scope.padding_mask, self.read())
        position = self.predict(self.hidden(scope.x.transpose(0, 1)), source)
        if scope.observed:
            scope.exposed = position.detach().unsqueeze(1)
        distances = distances_from(source.columns(position), self.read()).unsqueeze(1)
        # Scaled before the product, as fairseq does.
        scores = multiply(query * self.head_dim**-0.5, key.transpose(-1, -2))
        scores = scores.masked_fill(scope.padding_mask[:, None, None], -torch.inf)
        near = syntax_directed_scores(scores, distances, self.window)
        return scope.average(scope.softmax(near), value)
