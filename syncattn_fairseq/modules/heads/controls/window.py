"""Heads that see only a window (LPSI's baseline "Local Attn")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ....base.option_fields import option
from ...batch_view import BatchView
from ...layer_numbers import encoder_layers_option
from ...part import register_part
from ...positions.positions import offsets
from ..heads import Heads, Scope

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass
class WindowOptions:
    """Local attention: the layers whose heads have it, and the size of their window."""

    local_layers: str = encoder_layers_option("whose heads see only a window")
    local_decoder_layers: str = option(
        "",
        "decoder layers with these heads; same: those of the encoder (none)",
    )
    local_window: int = option(2, "how many subwords the window has on either side", at_least=0)


@register_part("window")
class WindowHeads(Heads):
    """Heads that see only a window of tokens around the query; in a decoder, to its left."""

    Options = WindowOptions
    title = "window"
    encoder_layers = "local_layers"
    decoder_layers = "local_decoder_layers"
    arguments = ("local_window",)

    def __init__(self, count: int, head_dim: int, view: BatchView, window: int = 2) -> None:
        super().__init__(count, head_dim, view)
        self.window = window

    def bias(
        self,
        query: Float[Tensor, "batch heads rows width"],
        key: Float[Tensor, "batch heads tokens width"],
        scope: Scope,
    ) -> Float[Tensor, "... rows tokens"]:
        """Return 0 inside the window and minus infinity outside, an addend to the scores.

        Rows of padding see every word, since their window may have no word. With some kernels, a
        row that sees nothing is not a number.
        """
        outside = offsets(query.size(2), key.size(2), query.device).abs() > self.window
        if scope.padding_mask is not None:
            outside = outside & ~scope.padding_mask[:, None, :, None]
        return query.new_zeros(outside.shape).masked_fill(outside, -torch.inf)
