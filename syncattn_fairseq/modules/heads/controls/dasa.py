"""Heads with scores weighted by tree distances (DASA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ....base.option_fields import option
from ....functional import log_tree_weights, released_tree_weights, tree_weights
from ....functional._numerics import dot_products
from ...batch_view import BatchView
from ...layer_numbers import encoder_layers_option
from ...part import register_part
from ..heads import Scope
from .distance_bias import DISTANCES, DistanceHeads

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass
class DasaOptions:
    """DASA heads: their layers, the distance that they use, and how it changes scores."""

    dasa_layers: str = encoder_layers_option("whose scores are scaled by tree distances (DASA)")
    dasa_distance: str = option(
        "tree", "the distance, as for --distance-bias-distance", choices=DISTANCES
    )
    dasa_form: str = option(
        "reading",
        "scores times 1 + λ exp(-distance), our reading of the paper; or times w, the release's "
        "inverse distances, normalised over words (released); or plus λ log w, its mode log (log)",
        choices=("reading", "released", "log"),
    )
    dasa_strength: float = option(1.0, "λ of our reading and of the form log", at_least=0)


@register_part("dasa")
class DasaHeads(DistanceHeads):
    """Heads without parameters whose attention scores are weighted by tree distance.

    ============ =====================================================================
    ``reading``  scaled by :func:`.tree_weights`
    ``released`` scaled by :func:`.released_tree_weights`, the released code's ``mul``
    ``log``      plus :func:`.log_tree_weights` of the same, the released code's ``log``
    ============ =====================================================================

    As in PASCAL, what positions add to scores is added after scaling.

    Args:
        distance: one of :data:`.DISTANCES`.
        form: one of the forms above.
        strength: λ, which ``released`` has not.
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
        """Attend with scores changed by the distance between words, according to ``form``.

        Args:
            query, key, value, scope: as for :meth:`.Heads.attend`.
        """
        wide = torch.promote_types(query.dtype, torch.float32)
        query, key = scope.order.turn(query, key)
        name = (self.distance, self.form, self.strength, wide)
        weights = self.share(name, lambda: self._weigh(key.size(2), wide, key.device))
        products, weights = dot_products(query, key), weights.unsqueeze(-3)
        scores = products + weights if self.form == "log" else products * weights
        return scope.average(scope.softmax(scores), value)

    def _weigh(
        self, columns: int, dtype: torch.dtype, device: torch.device
    ) -> Float[Tensor, "... {columns} {columns}"]:
        """Return the factor of attention scores or, with ``log``, the addend to the scores.

        The result is for each sentence or for all.
        """
        distances = self.measure(columns, columns, device).to(dtype)
        if self.form == "reading":
            return tree_weights(distances, self.strength)
        weights = released_tree_weights(distances)
        return weights if self.form == "released" else log_tree_weights(weights, self.strength)
