"""Heads gated by learned syntactic distances (LPSI)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from ...base.errors import DataError
from ...base.option_fields import flag, option
from ...functional import syntactic_distances
from ...functional.lpsi import last_syntactic_distance, log_gates, log_gates_of_last
from ..batch_view import BatchView
from ..layer_numbers import (
    SIDES,
    decoder_layers_option,
    encoder_layers_option,
    read_layers,
    read_trained_layers,
)
from ..part import register_part
from .heads import Heads, Scope

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


@dataclass
class GateOptions:
    """Gated heads (LPSI): their layers, gates, and the cross-attention that projects distances."""

    distance_layers: str = encoder_layers_option(
        "whose heads are gated by syntactic distances (LPSI)"
    )
    distance_decoder_layers: str = decoder_layers_option()
    distance_look_back: int = option(
        5, "number of preceding subwords from which a subword's distance is computed", at_least=0
    )
    gate_temperature: float = option(
        1.0,
        "temperature τ, by which differences of distances are multiplied: a larger τ closes "
        "gates more sharply",
        above=0,
    )
    distance_sync_layers: str = option(
        "",
        "decoder layers whose cross-attention ties the distances of both sides, one "
        "for each gated layer, in order (none)",
    )


@register_part("gated")
class GatedHeads(Heads):
    """Heads whose attention is gated by syntactic distances (LPSI Eq. 4-6).

    Each head measures distances by a convolution over its own keys (Eq. 4). It adds the logarithm
    of the gates (Eq. 5) to its scores, so that its softmax is Eq. 6.

    Args:
        look_back: M; the convolution sees M + 1 keys.
        temperature: τ of the gates.
    """

    Options: ClassVar[type] = GateOptions
    title = "gated"
    encoder_layers = "distance_layers"
    decoder_layers = "distance_decoder_layers"
    arguments = ("distance_look_back", "gate_temperature")
    exposes: ClassVar[str | None] = "distances"

    def __init__(
        self,
        count: int,
        head_dim: int,
        view: BatchView,
        look_back: int = 5,
        temperature: float = 1.0,
    ) -> None:
        super().__init__(count, head_dim, view)
        self.weight = nn.Parameter(torch.empty(count, look_back + 1, head_dim))
        self.distance_bias = nn.Parameter(torch.zeros(count))
        self.temperature = temperature
        bound = float(self.weight[0].numel() ** -0.5)  # as in PyTorch's linear layers of this size
        nn.init.uniform_(self.weight, -bound, bound)

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Raise `DataError` if ``--distance-sync-layers`` are set, but not one per gated layer."""
        synchronised = read_trained_layers(cfg, "distance_sync_layers", "decoder")
        for side in SIDES:
            option = cls.layer_option(cfg, side)
            gated = read_trained_layers(cfg, option, side)
            if synchronised and len(synchronised) != len(gated):
                raise DataError(
                    f"--distance-sync-layers {cfg.distance_sync_layers}: give one layer for each "
                    f"of {flag(option)} {getattr(cfg, option)}"
                )

    @classmethod
    def is_exposed_in_training(cls, cfg: Any) -> bool:
        """Return whether losses read the syntactic distances (``--distance-sync-layers``)."""
        return cls.exposes is not None and bool(read_layers(cfg, "distance_sync_layers", "decoder"))

    def measure(
        self,
        keys: Float[Tensor, "batch heads tokens width"],
        padding_mask: Bool[Tensor, "batch tokens"] | None = None,
    ) -> Float[Tensor, "batch heads tokens"]:
        """Compute the syntactic distances of keys (LPSI Eq. 4), in float32 or wider.

        Keys of padding, True in the mask, count as zeros.
        """
        if padding_mask is not None:
            keys = keys.masked_fill(padding_mask[:, None, :, None], 0.0)
        return syntactic_distances(keys, self.weight, self.distance_bias)

    def bias(
        self,
        query: Float[Tensor, "batch heads rows width"],
        key: Float[Tensor, "batch heads tokens width"],
        scope: Scope,
    ) -> Float[Tensor, "batch heads rows tokens"]:
        """Return the log gates, an addend to the scores; store the syntactic distances for losses.

        Both are in float32 or wider.
        """
        if scope.state is None:
            distances = self.measure(key, scope.padding_mask)
            if scope.observed:
                scope.exposed = distances
            return self.log_gates(distances, scope)
        last = last_syntactic_distance(key, self.weight, self.distance_bias).unsqueeze(-1)
        before = scope.state.get("distances")
        distances = last if before is None else torch.cat([before, last], dim=-1)
        scope.state["distances"] = distances
        return self.log_gates_of_last(distances)

    def log_gates(
        self, distances: Float[Tensor, "batch heads tokens"], scope: Scope
    ) -> Float[Tensor, "batch heads tokens tokens"]:
        """Compute the logarithm of the gates from syntactic distances (LPSI Eq. 5)."""
        return log_gates(distances, self.temperature, scope.causal)

    def log_gates_of_last(
        self, distances: Float[Tensor, "batch heads tokens"]
    ) -> Float[Tensor, "batch heads 1 tokens"]:
        """Compute the last query's log gates from syntactic distances, for one decoding step."""
        return log_gates_of_last(distances, self.temperature).unsqueeze(-2)
