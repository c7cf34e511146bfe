"""The weights that parent-scaled heads multiply their scores with, and their controls."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..functional import parent_gaussian
from ..functional.pascal import density_peak

#: Whose position the density is centred on.
PARENTS = ("parse", "shuffled", "random", "self", "constant")


class ParentWeights(nn.Module):
    """D of PASCAL (Eq. 2), with parent ignoring, or of a control. It has no parameters.

    The density is at most 0.4, so that D is a temperature as well. The controls tell the two
    apart: what a model gains from ``parse`` beyond these is syntax.

    ============ ========================================================================
    ``parse``    a token's parent, as the data gives it
    ``shuffled`` the parent of another word of the sentence; the data shuffles them
    ``random``   a token's parent in a random tree; the data draws it
    ``self``     the token itself: distance alone
    ``constant`` every weight is the density's peak: temperature alone
    ============ ========================================================================

    Args:
        parents: one of these.
        std: σ, in subwords.
        ignoring: q, with which, in training, a row becomes ones, for all heads and layers.
    """

    def __init__(self, parents: str = "parse", std: float = 1.0, ignoring: float = 0.0) -> None:
        super().__init__()
        self.parents = parents
        self.std = std
        self.ignoring = ignoring

    @property
    def reads_parents(self) -> bool:
        """Whether the data has to supply parents."""
        return self.parents not in ("self", "constant")

    def forward(self, tokens: Tensor, parents: Tensor | None) -> Tensor:
        """Compute D of a batch.

        Args:
            tokens: ``(B, T)``, of which only the shape and the device matter.
            parents: ``(B, T)`` columns in floating point, NaN = none (a row of ones).

        Returns:
            ``(B, T, T)``.

        Raises:
            ValueError: there are no parents, and it reads them.
        """
        batch, length = tokens.shape
        if self.parents == "constant":
            peak = density_peak(self.std)
            weights = torch.full((batch, length, length), peak, device=tokens.device)
        else:
            if self.parents == "self":
                parents = torch.arange(length, dtype=torch.float, device=tokens.device)
                parents = parents.expand(batch, length)
            elif parents is None:
                raise ValueError(
                    "the model's parent-scaled heads need net_input.src_parents, the parse of the "
                    "source; --task translation_with_syntax supplies it"
                )
            weights = parent_gaussian(parents.float(), length, self.std)
        if self.training and self.ignoring > 0:
            ignored = torch.rand(batch, length, 1, device=tokens.device) < self.ignoring
            weights = weights.masked_fill(ignored, 1.0)
        return weights
