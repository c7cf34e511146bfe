"""Cross-attention that also computes attention from source to target (for SyncAttn)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...base.errors import DataError
from ...base.option_fields import option
from ...functional._numerics import multiply
from ..layer_numbers import CROSS, read_layer
from ..part import register_part
from .heads import Heads, Scope

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass
class SyncOptions:
    """SyncAttn: the decoder layer and attention that project source parses onto the target."""

    sync_layer: int = option(
        0,
        "decoder layer whose cross-attention SyncAttn's loss compares with the dependency "
        "heads of both sides (0 = no such loss)",
    )
    sync_backward: str = option(
        "transpose",
        "from source to target: the transposed cross-attention (SyncAttn Eq. 7) or a "
        "softmax over the target positions (NLP 2021, Eq. 11)",
        choices=("transpose", "softmax"),
    )


@register_part("sync")
class BackwardHeads(Heads):
    """Cross-attention heads that also compute attention from the source to the target.

    The backward attention is the softmax over the target positions of the transposed scores. It is
    exposed in teacher forcing, ``(B, h, T, S)``: each column of a source token sums to one. All
    heads of the layer have it, since the loss averages the same heads in both directions.
    """

    Options = SyncOptions
    title = "backward"
    option = "sync_backward"
    cross_layers = "sync_layer"
    exposes = "backward"
    folds = True

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Raise `DataError` if ``--sync-layer`` lacks dependency heads in encoder or decoder."""
        layer = read_layer(cfg, "sync_layer", "decoder")
        if layer and not (cfg.encoder_dependency_layer and cfg.decoder_dependency_layer):
            raise DataError(
                "--sync-layer ties the dependency heads of encoder and decoder: "
                "set --encoder-dependency-layer and --decoder-dependency-layer too"
            )

    @classmethod
    def list_layers(cls, cfg: Any, side: str) -> list[int]:
        """Return ``--sync-layer`` in a list, empty unless ``--sync-backward`` is ``softmax``."""
        layer = read_layer(cfg, "sync_layer", "decoder")
        return [layer] if layer and side == CROSS and cfg.sync_backward == "softmax" else []

    @classmethod
    def count_heads(cls, cfg: Any, side: str, free: int) -> int:
        """Return the number of the layer's heads, since all also attend from source to target."""
        heads: int = cfg.decoder.attention_heads
        return heads

    def attend(
        self,
        query: Float[Tensor, "batch heads rows width"],
        key: Float[Tensor, "batch heads tokens width"],
        value: Float[Tensor, "batch heads tokens outputs"],
        scope: Scope,
    ) -> Float[Tensor, "batch heads rows outputs"]:
        """Attend as ordinary heads do, and store the source-to-target attention for losses.

        Args:
            query, key, value, scope: as for :meth:`.Heads.attend`.
        """
        if not scope.observed:
            return super().attend(query, key, value, scope)
        assert scope.padding_mask is not None  # cross-attention has one
        # Scaled before the product, as fairseq does.
        scores = multiply(query * self.head_dim**-0.5, key.transpose(-1, -2))
        lowest = torch.finfo(scores.dtype).min
        # Columns of source padding are uniform here, and E's columns there are 0.
        hidden = self.view.padding_mask[:, None, :, None] | scope.padding_mask[:, None, None]
        scope.exposed = scores.masked_fill(hidden, lowest).softmax(dim=-2)
        return scope.average(scope.softmax(scores), value)
