"""Heads that see only a window (LPSI's baseline "Local Attn")."""

from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.dataclass import FairseqDataclass
from torch import Tensor

from ..batch_view import BatchView
from ..options import check_range
from ..registry import register_part
from .heads import Heads, Scope


@dataclass
class WindowOptions(FairseqDataclass):
    """Local attention: which heads have it and how far they see."""

    local_layers: str = field(
        default="", metadata={"help": "encoder layers whose heads see only a window (none)"}
    )
    local_window: int = field(
        default=2, metadata={"help": "how many subwords the window has on either side"}
    )


@register_part("window")
class WindowHeads(Heads):
    """Encoder heads that see only a token's neighbourhood.

    Args:
        count, head_dim, view: as for :class:`.Heads`.
        window: how many tokens they see on either side.
    """

    Options = WindowOptions
    title = "window"
    option = encoder_layers = "local_layers"

    def __init__(self, count: int, head_dim: int, view: BatchView, window: int = 2) -> None:
        super().__init__(count, head_dim, view)
        self.window = window

    @classmethod
    def build(
        cls, cfg: Any, side: str, count: int, head_dim: int, view: BatchView
    ) -> "WindowHeads":
        """Build the heads of one layer."""
        return cls(count, head_dim, view, cfg.local_window)

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Check the window's size."""
        check_range(cfg, "local_window", 0, float("inf"), "must be 0 or more")

    def bias(self, query: Tensor, key: Tensor, scope: Scope) -> Tensor:
        """Return minus infinity outside the window; padded rows see every word.

        Their window may have no word. A row that sees nothing is not a number with some kernels.
        """
        length = query.size(2)
        band = torch.ones(length, length, dtype=torch.bool, device=query.device)
        outside = ~band.triu(-self.window).tril(self.window)
        if scope.padding_mask is not None:
            outside = outside & ~scope.padding_mask[:, None, :, None]
        return query.new_zeros(outside.shape).masked_fill(outside, -torch.inf)
