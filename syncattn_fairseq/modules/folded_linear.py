"""A linear layer that computes its weight and bias from its trained parameters."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

#: A function from a weight (N, D) and a bias (N) to new ones of the same shapes.
Rewrite = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class FoldedLinear(nn.Module):
    """A linear layer whose weight and bias are computed from its trained parameters.

    Checkpoints hold the plain parameters under their usual names, ``weight`` and ``bias``. Code
    that reads these attributes, such as PyTorch's fused attention, gets the rewritten ones, with
    gradients.
    """

    folded_weight: Tensor | None
    folded_bias: Tensor | None

    def __init__(self, linear: nn.Linear, rewrite: Rewrite) -> None:
        super().__init__()
        # Not registered as usual, since properties have these names.
        self._parameters |= linear._parameters
        self.rewrite = rewrite
        # Buffers follow the module to another device or type; checkpoints leave these out.
        self.register_buffer("folded_weight", None, persistent=False)
        self.register_buffer("folded_bias", None, persistent=False)

    @property
    def plain(self) -> tuple[Tensor, Tensor]:
        """The trained weight and bias, from which the effective ones are computed."""
        weight, bias = self._parameters["weight"], self._parameters["bias"]
        assert weight is not None and bias is not None
        return weight, bias

    @property
    def weight(self) -> Tensor:
        """The effective weight, computed from the trained parameters."""
        return self.rewrite(*self.plain)[0] if self.folded_weight is None else self.folded_weight

    @property
    def bias(self) -> Tensor:
        """The effective bias, computed from the trained parameters."""
        return self.rewrite(*self.plain)[1] if self.folded_bias is None else self.folded_bias

    def forward(self, x: Tensor) -> Tensor:
        """Multiply by the weight and add the bias that are computed from the trained parameters."""
        return F.linear(x, self.weight, self.bias)

    def make_generation_fast_(self, **_: object) -> None:
        """Compute the effective weight and bias once and for all, when training is over.

        fairseq calls this before decoding.
        """
        with torch.no_grad():
            self.folded_weight, self.folded_bias = self.rewrite(*self.plain)
