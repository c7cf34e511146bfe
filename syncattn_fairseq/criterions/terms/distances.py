"""Losses that synchronise the syntactic distances of source and target (LPSI Eq. 7-10)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...base.option_fields import option
from ...functional import project_distances, sync_mse_loss, sync_rank_loss
from .term import Log, Term, register_term


@dataclass
class DistanceLossOptions:
    """SynchMSE and SynchRank (LPSI): their weights, and the decoding step that they compare."""

    sync_mse_weight: float = option(0.0, "weight of SynchMSE, which ties syntactic distances")
    sync_rank_weight: float = option(
        0.0, "weight of SynchRank, which ties the order of syntactic distances"
    )
    sync_shift: bool = option(
        False,
        "SynchMSE and SynchRank: compare a token's distance with the cross-attention of the step "
        "that predicts the token, not of the step that reads the token",
    )


class DistanceTerm(Term):
    """Loss between the target's syntactic distances and those projected from the source.

    The projection is LPSI Eq. 8.

    Layers are paired in order: the bottom gated layers with the lowest sync layer. Heads are
    averaged first.

    `d_i` is measured where `y_{i−1}` is read, and row i of the cross-attention predicts `y_i`. With
    ``--sync-shift`` a distance is paired with the row before, which predicts the token read.
    """

    Options = DistanceLossOptions

    def __init__(self, options: Any, task: Any) -> None:
        super().__init__(options, task)
        self.shift: bool = options.sync_shift

    @staticmethod
    def compare(distances: Tensor, projected: Tensor, padding_mask: Tensor) -> Tensor:
        """Return the loss between target and projected distances, summed over unmasked tokens.

        Distances are ``(layers, B, T)``, the mask is ``(B, T)``.
        """
        raise NotImplementedError

    def applies(self, extra: dict[str, Any], sample: dict[str, Any]) -> bool:
        """Return whether the weight is above 0 and the model has ``--distance-sync-layers``."""
        return self.weight > 0 and "distance_attn" in extra

    def __call__(self, extra: dict[str, Any], sample: dict[str, Any]) -> tuple[Tensor, Log]:
        """Return the loss summed over layer pairs and target tokens (SynchRank: token pairs)."""
        source, distances = (
            torch.stack([heads.mean(1) for heads in extra[f"{side}_distances"]])
            for side in ("src", "tgt")
        )
        projected = project_distances(source, torch.stack(extra["distance_attn"]))
        padding = sample["target"].eq(self.pad)
        if self.shift:
            distances, projected = distances[..., 1:], projected[..., :-1]
            padding = padding[:, 1:] | padding[:, :-1]
        return self.compare(distances, projected, padding), {}


@register_term("sync_mse_loss")
class SyncMSETerm(DistanceTerm):
    """SynchMSE: squared differences of target and projected syntactic distances (LPSI Eq. 7)."""

    weight_option = "sync_mse_weight"
    compare = staticmethod(sync_mse_loss)


@register_term("sync_rank_loss")
class SyncRankTerm(DistanceTerm):
    """SynchRank: ranking hinge loss of target and projected syntactic distances (LPSI Eq. 10)."""

    weight_option = "sync_rank_weight"
    compare = staticmethod(sync_rank_loss)
