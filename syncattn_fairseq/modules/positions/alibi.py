"""Linear biases in place of position embeddings (ALiBi)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...base.option_fields import option
from ...functional import alibi_slopes, linear_biases
from ..batch_view import BatchView
from ..layer_numbers import check_positive
from ..slot import Slot
from .positions import Positions, offsets, register_positions


@dataclass
class AlibiOptions:
    """ALiBi: how steep it is."""

    alibi_scale: float = option(1.0, "factor of the published slopes of --positions alibi")


@register_positions("alibi")
class AlibiPositions(Positions):
    """Scores that fall linearly with the distance, in each head with another slope.

    The paper has a decoder only; here an encoder falls off in the same way on both sides.

    Args:
        heads, head_dim, view, causal: as for :class:`.Positions`.
        scale: factor of the published slopes.
    """

    Options = AlibiOptions
    slopes: Tensor

    def __init__(
        self, heads: int, head_dim: int, view: BatchView, causal: bool, scale: float = 1.0
    ) -> None:
        super().__init__(heads, head_dim, view, causal)
        self.scale = scale
        self.register_buffer("slopes", scale * alibi_slopes(heads), persistent=False)

    @classmethod
    def build(cls, cfg: Any, layer: Slot) -> "AlibiPositions":
        """Build the positions of one layer."""
        causal = layer.side == "decoder"
        return cls(layer.total, layer.head_dim, layer.view, causal, cfg.alibi_scale)

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Check the factor."""
        check_positive(cfg, "alibi_scale")

    def bias(self, rows: int, columns: int, device: torch.device) -> Tensor:
        """Return the same for all layers."""
        return self.view.share(
            f"alibi_{self.heads}_{self.scale}_{rows}_{columns}",
            lambda: linear_biases(offsets(rows, columns, device).abs(), self.slopes),
        )
