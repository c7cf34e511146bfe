"""Linear biases in place of position embeddings (ALiBi)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ...base.option_fields import option
from ...functional import alibi_slopes, linear_biases
from ..batch_view import BatchView
from .positions import Positions, offsets, register_positions

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass
class AlibiOptions:
    """ALiBi: the factor of its slopes."""

    alibi_scale: float = option(1.0, "factor of the published slopes of --positions alibi", above=0)


@register_positions("alibi")
class AlibiPositions(Positions):
    """Score addends falling linearly with the distance, with a slope for each head (ALiBi).

    The paper has a decoder only; here an encoder falls off in the same way on both sides.
    """

    Options = AlibiOptions
    arguments = ("alibi_scale",)
    slopes: Tensor

    def __init__(
        self, heads: int, head_dim: int, view: BatchView, causal: bool, scale: float = 1.0
    ) -> None:
        super().__init__(heads, head_dim, view, causal)
        self.scale = scale
        self.register_buffer("slopes", scale * alibi_slopes(heads), persistent=False)

    def bias(
        self, rows: int, columns: int, device: torch.device
    ) -> Float[Tensor, "{self.heads} {rows} {columns}"]:
        """Return ALiBi's addend to the scores of each head, common to all layers."""
        return self.share(
            (self.heads, self.scale, rows, columns),
            lambda: linear_biases(offsets(rows, columns, device).abs(), self.slopes),
        )
