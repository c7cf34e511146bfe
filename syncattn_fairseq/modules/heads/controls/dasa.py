"""Heads whose scores are multiplied by weights that fall with tree distances (DASA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ....base.option_fields import option
from ....functional import parent_scaled_scores, released_tree_weights, tree_weights
from ...batch_view import BatchView
from ...layer_numbers import encoder_layers_option
from ...part import register_part
from ..heads import Scope
from .distance_bias import DISTANCES, DistanceHeads

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass
class DasaOptions:
    """DASA: where its heads are, whose tree they see and how."""

    dasa_layers: str = encoder_layers_option("whose scores are scaled by tree distances (DASA)")
    dasa_distance: str = option(
        "tree", "the distance, as for --distance-bias-distance", choices=DISTANCES
    )
    dasa_form: str = option(
        "reading",
        "1 + λ exp(-distance), our reading of the paper; or the release's inverse distances, "
        "normalised over words (released)",
        choices=("reading", "released"),
    )
    dasa_strength: float = option(1.0, "λ of our reading", at_least=0)


@register_part("dasa")
class DasaHeads(DistanceHeads):
    """Heads whose dot products are scaled by :func:`.tree_weights`; they have no parameters.

    As in PASCAL, what positions add to scores is added after scaling.

    Args:
        distance: one of :data:`.DISTANCES`.
        form: ``reading`` or ``released``.
        strength: λ of our reading.
    """

    Options = DasaOptions
    title = "DASA"
    encoder_layers = "dasa_layers"
    distance_option = "dasa_distance"
    arguments = ("dasa_distance", "dasa_form", "dasa_strength")

    def __init__(
        self,
        count: int,
        head_dim: int,
        view: BatchView,
        distance: str = "tree",
        form: str = "reading",
        strength: float = 1.0,
    ) -> None:
        super().__init__(count, head_dim, view, distance)
        self.form = form
        self.strength = strength

    def attend(
        self,
        query: Float[Tensor, "batch heads tokens width"],
        key: Float[Tensor, "batch heads tokens width"],
        value: Float[Tensor, "batch heads tokens outputs"],
        scope: Scope,
    ) -> Float[Tensor, "batch heads tokens outputs"]:
        """Attend with scaled scores."""
        wide = torch.promote_types(query.dtype, torch.float32)
        query, key = scope.order.turn(query, key)
        name = (self.distance, self.form, self.strength, wide)
        weights = self.share(name, lambda: self._weigh(key.size(2), wide, key.device))
        scores = parent_scaled_scores(query, key, weights.unsqueeze(-3))
        return scope.average(scope.softmax(scores), value)

    def _weigh(
        self, columns: int, dtype: torch.dtype, device: torch.device
    ) -> Float[Tensor, "... {columns} {columns}"]:
        """Return the factors of the scores, of each sentence or of all."""
        distances = self.measure(columns, columns, device).to(dtype)
        if self.form == "released":
            return released_tree_weights(distances)
        return tree_weights(distances, self.strength)
