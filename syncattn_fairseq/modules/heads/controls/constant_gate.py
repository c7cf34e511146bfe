"""Heads gated as LPSI's are if all syntactic distances are 0, a control with nothing learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ....functional import constant_log_gates
from ...layer_numbers import decoder_layers_option, encoder_layers_option
from ...part import register_part
from ...positions.positions import offsets
from ..heads import Heads, Scope

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass
class ConstantGateOptions:
    """Constant gates, a control of LPSI: the layers whose heads have them."""

    constant_gate_layers: str = encoder_layers_option(
        "whose heads have LPSI's gates with all distances 0, a decay that halves from token to "
        "token"
    )
    constant_gate_decoder_layers: str = decoder_layers_option()


@register_part("constant_gate")
class ConstantGateHeads(Heads):
    """Heads without parameters, gated as LPSI's are before training: all distances are 0.

    What LPSI gains over them is due to the distances that it learns.
    """

    Options = ConstantGateOptions
    title = "gated (constant)"
    encoder_layers = "constant_gate_layers"
    decoder_layers = "constant_gate_decoder_layers"

    def bias(
        self,
        query: Float[Tensor, "batch heads rows width"],
        key: Float[Tensor, "batch heads tokens width"],
        scope: Scope,
    ) -> Float[Tensor, "rows tokens"]:
        """Return the logarithm of the constant gates, common to all heads and layers."""
        rows, columns = query.size(2), key.size(2)
        wide = torch.promote_types(query.dtype, torch.float32)
        return self.share(
            (rows, columns, wide),
            lambda: constant_log_gates(offsets(rows, columns, query.device), wide),
        )
