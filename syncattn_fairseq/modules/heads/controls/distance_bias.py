"""Heads that add a bias for the distance between two words: linear, or in a tree.

One equation with several distances: the control that asks whether a tree's distances help more than
those of the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ....base.errors import DataError
from ....base.option_fields import flag, option
from ....data.fields import NOTHING, TREE_DISTANCES, SourceFields
from ....functional import alibi_slopes, linear_biases
from ...batch_view import BatchView
from ...layer_numbers import encoder_layers_option
from ...part import Slot, register_part
from ...positions.positions import offsets
from ..heads import Heads, Scope

if TYPE_CHECKING:
    from jaxtyping import Float, Int

#: Kinds of distance: in subwords (linear), or in edges of the data's dependency tree (tree).
DISTANCES = ("linear", "tree")


@dataclass
class DistanceBiasOptions:
    """Heads with a distance bias: their layers, the distance, and the form of the bias."""

    distance_bias_layers: str = encoder_layers_option(
        "whose heads add a bias for the distance between two words"
    )
    distance_bias_decoder_layers: str = option(
        "",
        "decoder layers with these heads, with linear distances only; same: those of the encoder "
        "(none)",
    )
    distance_bias_distance: str = option(
        "linear",
        "distance in subwords (linear), or in edges between two words of the source's tree (tree)",
        choices=DISTANCES,
    )
    distance_bias_form: str = option(
        "learnt",
        "the bias: one number per head and distance, from 0 to 16 and more (learnt), or the "
        "distance times ALiBi's slope of the head (slopes)",
        choices=("learnt", "slopes"),
    )


class DistanceHeads(Heads):
    """Base class of heads that use the distance between two words, linear or in a tree."""

    #: The name of the option that chooses the kind of distance.
    distance_option: ClassVar[str]
    reads = TREE_DISTANCES

    def __init__(self, count: int, head_dim: int, view: BatchView, distance: str) -> None:
        super().__init__(count, head_dim, view)
        self.distance = distance

    @classmethod
    def list_fields(cls, cfg: Any) -> SourceFields:
        """Return the batch field of tree distances, or none if distances are linear."""
        linear = getattr(cfg, cls.distance_option) == "linear"
        return NOTHING if linear else super().list_fields(cfg)

    def measure(
        self, rows: int, columns: int, device: torch.device
    ) -> Int[Tensor, "... {rows} {columns}"]:
        """Return the distances, in text or tree, of the last ``rows`` tokens from all tokens.

        Linear distances are the same for all sentences.
        """
        if self.distance == "linear":
            return offsets(rows, columns, device).abs()
        return self.read().int()


@register_part("distance_bias")
class DistanceBiasHeads(DistanceHeads):
    """Heads that add a bias for the distance between two words to their scores.

    .. math:: q_i · k_j / √d + b_h[min(distance_{ij}, K)]

    Learnt biases start at 0; with slopes, the bias is ALiBi's, `−m_h · distance_{ij}`.

    Args:
        distance: one of :data:`DISTANCES`.
        limit: K, of learnt biases.
        slopes: m of these heads; None for learnt biases.
    """

    Options = DistanceBiasOptions
    title = "distance"
    encoder_layers = "distance_bias_layers"
    decoder_layers = "distance_bias_decoder_layers"
    distance_option = "distance_bias_distance"
    slopes: Float[Tensor, "heads"] | None

    def __init__(
        self,
        count: int,
        head_dim: int,
        view: BatchView,
        distance: str = "linear",
        limit: int = 16,
        slopes: Float[Tensor, "{count}"] | None = None,
    ) -> None:
        super().__init__(count, head_dim, view, distance)
        self.limit = limit
        self.register_buffer("slopes", slopes, persistent=False)
        self.weight = None
        if slopes is None:
            self.weight = nn.Parameter(torch.zeros(limit + 1, count))

    @classmethod
    def build(cls, cfg: Any, slot: Slot) -> DistanceBiasHeads:
        """Build a layer's heads with a distance bias from the model's options."""
        slopes = None
        if cfg.distance_bias_form == "slopes":
            slopes = alibi_slopes(slot.total)[list(slot.numbers)]
        distance = cfg.distance_bias_distance
        return cls(slot.count, slot.head_dim, slot.view, distance, slopes=slopes)

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Raise `DataError` if heads of the decoder are to use distances in the source's tree."""
        if cfg.distance_bias_distance != "linear" and cls.list_layers(cfg, "decoder"):
            option = cls.decoder_layers
            raise DataError(
                f"{flag(option)} {getattr(cfg, option)}: the decoder reads no dependency tree; "
                f"leave {flag(option)} out, or choose --distance-bias-distance linear"
            )

    def start_plain(self) -> bool:
        """Set learnt biases to 0, as in ordinary heads; return False for fixed slopes."""
        if self.weight is not None:
            self.weight.zero_()
        return self.weight is not None

    def bias(
        self,
        query: Float[Tensor, "batch heads rows width"],
        key: Float[Tensor, "batch heads tokens width"],
        scope: Scope,
    ) -> Float[Tensor, "... heads rows tokens"]:
        """Return each head's bias for every pair of words, which depends on their distance."""
        rows, columns, limit = query.size(2), key.size(2), self.limit
        name = (self.distance, rows, columns)

        def measure() -> Int[Tensor, "... {rows} {columns}"]:
            return self.measure(rows, columns, query.device)

        if self.slopes is not None:
            return linear_biases(self.share(name, measure), self.slopes)
        assert self.weight is not None
        buckets = self.share((*name, limit), lambda: measure().clamp_max(limit))
        return F.embedding(buckets, self.weight).movedim(-1, -3)
