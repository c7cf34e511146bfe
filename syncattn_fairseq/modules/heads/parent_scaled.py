"""Heads that look around each token's parent (PASCAL), and their controls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...base.option_fields import option
from ...data.fields import NOTHING, PARENT_POSITIONS, SourceFields
from ...functional import parent_gaussian, parent_scaled_scores
from ...functional.pascal import density_peak
from ..batch_view import BatchView
from ..layer_numbers import check_range, encoder_layers_option
from ..part import register_part
from .heads import Heads, Scope

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass
class ParentScaledOptions:
    """Parent-scaled heads (PASCAL): their layers, their number, and what scales their scores."""

    pascal_layers: str = encoder_layers_option("with parent-scaled heads")
    pascal_heads: int = option(
        0, "number of parent-scaled heads in each of these layers (0 = all but one)"
    )
    pascal_std: float = option(
        1.0,
        "standard deviation of the density around the parent, in subwords (0 = only the parent)",
        at_least=0,
    )
    pascal_parents: str = option(
        "parse",
        "centre of the density: the parent (parse), or a control: the token itself (self), or a "
        "constant as high as the peak (constant)",
        choices=("parse", "self", "constant"),
    )
    parent_ignoring: float = option(
        0.0, "probability, in training, of not scaling a token's scores"
    )


@register_part("parent_scaled")
class ParentScaledHeads(Heads):
    """Heads whose scores are multiplied by a density around the parent's position (PASCAL Eq. 1-2).

    They have no parameters. The density is at most 0.4, so D also acts as a temperature. The
    controls separate the two effects: what a model gains with ``parse`` over them is due to syntax.

    ============ ========================================================================
    ``parse``    a token's parent, in the tree that the data gives
    ``self``     the token itself: only distance
    ``constant`` every weight is the density's peak: only temperature
    ============ ========================================================================

    What positions add to scores (:mod:`..positions`) is added after scaling: the density multiplies
    dot products only.

    Args:
        parents: one of the above.
        std: σ, in subwords.
        ignoring: q, the probability that a row of D becomes ones in training, for all heads of the
            layer.
    """

    Options = ParentScaledOptions
    title = "parent-scaled"
    rank = "last"
    option = "pascal_heads"
    encoder_layers = "pascal_layers"
    arguments = ("pascal_parents", "pascal_std", "parent_ignoring")
    reads = PARENT_POSITIONS

    def __init__(
        self,
        count: int,
        head_dim: int,
        view: BatchView,
        parents: str = "parse",
        std: float = 1.0,
        ignoring: float = 0.0,
    ) -> None:
        super().__init__(count, head_dim, view)
        self.parents = parents
        self.std = std
        self.ignoring = ignoring

    @classmethod
    def count_heads(cls, cfg: Any, side: str, free: int) -> int:
        """Return ``--pascal-heads``, or by default the number of all free heads but one."""
        return cfg.pascal_heads or max(1, free - 1)

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Raise `DataError` unless ``--parent-ignoring`` is a probability."""
        check_range(cfg, "parent_ignoring", 0, 1, "a probability is 0 to 1")

    @classmethod
    def list_fields(cls, cfg: Any) -> SourceFields:
        """Return the batch field of parent positions, or none if a control replaces parents."""
        return super().list_fields(cfg) if cfg.pascal_parents == "parse" else NOTHING

    def attend(
        self,
        query: Float[Tensor, "batch heads tokens width"],
        key: Float[Tensor, "batch heads tokens width"],
        value: Float[Tensor, "batch heads tokens outputs"],
        scope: Scope,
    ) -> Float[Tensor, "batch heads tokens outputs"]:
        """Attend with scores multiplied by a density around each token's parent.

        Args:
            query, key, value, scope: as for :meth:`.Heads.attend`.
        """
        wide = torch.promote_types(query.dtype, torch.float32)
        query, key = scope.order.turn(query, key)
        scores = parent_scaled_scores(query, key, self.weigh_parents(wide).unsqueeze(1))
        return scope.average(scope.softmax(scores), value)

    def weigh_parents(
        self, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "batch tokens tokens"]:
        """Compute D, the density around each parent, with rows of ones for ignored parents.

        Raises:
            DataError: the batch lacks the parents that ``parse`` reads.
        """
        weights = self.share((self.parents, self.std), lambda: self._density(dtype))
        if self.training and self.ignoring > 0:
            # Every layer draws, again if it runs again for activation checkpointing. Otherwise
            # dropout, which draws next, would not be the same as in the first run.
            ignored = torch.rand(*weights.shape[:2], 1, device=weights.device) < self.ignoring
            weights = weights.masked_fill(ignored, 1.0)
        return weights

    def _density(self, dtype: torch.dtype) -> Float[Tensor, "batch tokens tokens"]:
        """Compute D, the density around each parent, without ignoring any parent."""
        (batch, length), device = self.view.tokens.shape, self.view.tokens.device
        if self.parents == "constant":
            peak = density_peak(self.std)
            return torch.full((batch, length, length), peak, dtype=dtype, device=device)
        if self.parents == "self":
            positions = torch.arange(length, device=device).expand(batch, length)
        else:
            positions = self.read()
        return parent_gaussian(positions.to(dtype), length, self.std)
