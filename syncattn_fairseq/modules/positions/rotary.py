"""Queries and keys rotated by their positions (RoPE)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...base.errors import DataError
from ...functional.controls.rotary import rotary_angles, rotate_by, unit_complex
from ..layer_numbers import SIDES
from ..part import Slot
from .positions import NoPositions, Positions, register_positions

if TYPE_CHECKING:
    from jaxtyping import Complex, Float


@register_positions("rotary")
class RotaryPositions(Positions):
    """Rotary position embedding (RoPE) of queries and keys, without parameters."""

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Raise `DataError` if a head has an odd width: dimensions are rotated in pairs."""
        if cfg.positions not in ("rotary", "interleaved"):
            return
        for side in SIDES:
            options = getattr(cfg, side)
            width = options.embed_dim // options.attention_heads
            if width % 2:
                raise DataError(
                    f"--positions {cfg.positions}: the {side}'s heads have {width} dimensions; it "
                    f"needs an even number: change --{side}-embed-dim or --{side}-attention-heads"
                )

    def rotate(
        self, states: Float[Tensor, "batch heads rows width"], first: int
    ) -> Float[Tensor, "batch heads rows width"]:
        """Rotate queries or keys by their positions, by the same angles in all layers."""
        width, last = states.size(-1), first + states.size(-2)
        wide = torch.promote_types(states.dtype, torch.float32)

        def measure() -> Complex[Tensor, "rows pairs"]:
            positions = torch.arange(first, last, device=states.device, dtype=wide)
            return unit_complex(rotary_angles(positions, width))

        return rotate_by(states, self.share((width, first, last, wide), measure))


@register_positions("interleaved")
class InterleavedPositions(RotaryPositions):
    """Rotary position embedding in layers 1, 3, 5 and so on, and no positions in the others.

    Yang et al., *Rope to Nope and Back Again*, 2025 (arXiv 2501.18795), and others.
    """

    @classmethod
    def build(cls, cfg: Any, layer: Slot) -> Positions:
        """Build rotary positions for a layer with an odd number, and none for an even one."""
        kind = RotaryPositions if layer.layer % 2 else NoPositions
        return kind.build(cfg, layer)
