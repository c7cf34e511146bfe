"""The bi-affine form of some heads, as a reparametrised query projection."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class BiaffineQuery(nn.Module):
    r"""A query projection whose first heads carry the bi-affine matrix U (SyncAttn Eq. 4).

    A bi-affine head attends with :math:`Q U K^\top / \sqrt{d}`. Since
    :math:`Q U = x (W_Q U) + b_Q U`, U is folded into W_Q and the layer stays an ordinary
    multi-head attention, on the same fused kernel; the folding costs d × d × D per call, whatever
    the batch. A key bias b is folded likewise: :math:`Q U K^\top / \sqrt{d} + b \cdot k =
    (Q U + \sqrt{d}\, b) K^\top / \sqrt{d}`.

    ``weight`` and ``bias`` are the folded ones, so that whoever reads them (PyTorch's fused
    attention does) sees an ``nn.Linear``.

    Args:
        linear: the plain projection of all heads, D → D.
        heads: how many of its heads, counted from the first, are bi-affine.
        head_dim: d.
        key_bias: also learn b.
    """

    def __init__(self, linear: nn.Linear, heads: int, head_dim: int, key_bias: bool) -> None:
        super().__init__()
        self.linear = linear
        self.biaffine_weight = nn.Parameter(torch.empty(heads, head_dim, head_dim))
        self.biaffine_bias = nn.Parameter(torch.empty(heads, head_dim)) if key_bias else None
        self.folded: tuple[Tensor, Tensor] | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise U as fairseq does W_Q: Xavier uniform with gain 1/sqrt(2); b with zeros."""
        for matrix in self.biaffine_weight:
            nn.init.xavier_uniform_(matrix, gain=1 / math.sqrt(2))
        if self.biaffine_bias is not None:
            nn.init.zeros_(self.biaffine_bias)

    @property
    def weight(self) -> Tensor:
        """The folded weight, ``(D, D)``."""
        if self.folded is not None:
            return self.folded[0]
        heads, head_dim, _ = self.biaffine_weight.shape
        plain = self.linear.weight[: heads * head_dim].view(heads, head_dim, -1)
        biaffine = self.biaffine_weight.transpose(1, 2) @ plain
        return torch.cat([biaffine.flatten(0, 1), self.linear.weight[heads * head_dim :]])

    @property
    def bias(self) -> Tensor:
        """The folded bias, ``(D,)``."""
        if self.folded is not None:
            return self.folded[1]
        heads, head_dim, _ = self.biaffine_weight.shape
        plain = self.linear.bias[: heads * head_dim].view(heads, 1, head_dim)
        biaffine = (plain @ self.biaffine_weight).squeeze(1)
        if self.biaffine_bias is not None:
            biaffine = biaffine + math.sqrt(head_dim) * self.biaffine_bias
        return torch.cat([biaffine.flatten(), self.linear.bias[heads * head_dim :]])

    def forward(self, x: Tensor) -> Tensor:
        """Project ``(..., D)`` to the queries of all heads, ``(..., D)``."""
        return F.linear(x, self.weight, self.bias)

    def make_generation_fast_(self, **_: object) -> None:
        """Fold once and for all; fairseq calls this before it decodes, and training is over."""
        self.folded = (self.weight.detach(), self.bias.detach())
