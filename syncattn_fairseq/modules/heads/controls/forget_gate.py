"""Heads with forget gates (Forgetting Transformer)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ....functional import forget_log_gates
from ....functional._numerics import widen
from ....functional.controls.forget_gate import last_forget_log_gates
from ...batch_view import BatchView
from ...layer_numbers import decoder_layers_option, encoder_layers_option
from ...part import Slot, register_part
from ..heads import Heads, Scope

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass
class ForgetGateOptions:
    """Forget gates: the layers with such heads."""

    forget_gate_layers: str = encoder_layers_option("whose heads have forget gates")
    forget_gate_decoder_layers: str = decoder_layers_option()


@register_part("forget_gate")
class ForgetGateHeads(Heads):
    """Heads with forget gates: every token weakens the attention past itself by a learned factor.

    .. math:: f_l = σ(w_h · x_l + b_h)

    w and b start at 0, so that the gates start as a decay that halves from token to token, as
    LPSI's do; the paper draws w.

    Args:
        embed_dim: D, the width of the layer's input x.
    """

    Options = ForgetGateOptions
    title = "forget-gated"
    encoder_layers = "forget_gate_layers"
    decoder_layers = "forget_gate_decoder_layers"

    def __init__(self, count: int, head_dim: int, view: BatchView, embed_dim: int) -> None:
        super().__init__(count, head_dim, view)
        self.weight = nn.Parameter(torch.zeros(count, embed_dim))
        self.forget_bias = nn.Parameter(torch.zeros(count))

    @classmethod
    def build(cls, cfg: Any, slot: Slot) -> ForgetGateHeads:
        """Build the heads of one layer."""
        return cls(slot.count, slot.head_dim, slot.view, slot.embed_dim)

    def bias(
        self,
        query: Float[Tensor, "batch heads rows width"],
        key: Float[Tensor, "batch heads tokens width"],
        scope: Scope,
    ) -> Float[Tensor, "batch heads rows tokens"]:
        """Return the logarithm of the gates between query and key."""
        assert scope.x is not None  # the attention sets it
        logits = F.linear(scope.x, self.weight, self.forget_bias).permute(1, 2, 0)
        log_forget = F.logsigmoid(widen(logits))
        if scope.state is None:
            return forget_log_gates(log_forget)
        total = scope.state.get("total")
        if total is None:
            total = log_forget
        else:
            total = torch.cat([total, total[..., -1:] + log_forget], dim=-1)
        scope.state["total"] = total
        return last_forget_log_gates(total, total[..., -1:].unsqueeze(-1))
