"""Self-attention of which some heads are dependency parsers (DBSA, SyncAttn)."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor
from torch.nn import functional as F

from ..functional import biaffine_scores
from .biaffine_query import BiaffineQuery


class DependencyAttention(MultiheadAttention):
    """fairseq's multi-head self-attention with bi-affine heads (SyncAttn Eq. 4).

    The heads take part in the layer as any other does. Their probabilities, which the fused kernel
    never shows, are computed apart by :meth:`dependencies`, for the losses and for printing.

    Args:
        dependency_heads: how many heads, counted from the first, are bi-affine.
        key_bias: add a bias for each key to their scores.
        *args, **kwargs: as for :class:`fairseq.modules.MultiheadAttention`.
    """

    def __init__(
        self, *args: Any, dependency_heads: int, key_bias: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.dependency_heads = dependency_heads
        self.q_proj: Any = BiaffineQuery(self.q_proj, dependency_heads, self.head_dim, key_bias)
        #: Gold parents, (B, T) columns, -1 = none; set for one forward pass by the encoder.
        self.gold_parents: Tensor | None = None

    def dependencies(
        self, x: Tensor, padding_mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Say where the bi-affine heads attend.

        Args:
            x: input of the attention, ``(T, B, D)`` as fairseq has it.
            padding_mask: ``(B, T)``, True = padding.
            causal: rows see no column to their right.

        Returns:
            ``(B, h, T, T)`` probabilities in float32 (or wider), row = dependent.
        """
        query, key = self._project(x, self.q_proj.linear), self._project(x, self.k_proj)
        scores = biaffine_scores(query, key, self.q_proj.biaffine_weight, self.q_proj.biaffine_bias)
        lowest = torch.finfo(scores.dtype).min
        if causal:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(future, lowest)
        if padding_mask is not None:
            scores = scores.masked_fill(padding_mask[:, None, None, :], lowest)
        return scores.softmax(dim=-1)

    def _project(self, x: Tensor, linear: torch.nn.Linear) -> Tensor:
        """Project ``(T, B, D)`` to the bi-affine heads only, ``(B, h, T, d)``."""
        width = self.dependency_heads * self.head_dim
        projected = F.linear(x, linear.weight[:width], linear.bias[:width])
        return projected.unflatten(-1, (self.dependency_heads, -1)).permute(1, 2, 0, 3)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        key_padding_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend as fairseq does; with gold parents, the bi-affine heads attend to those."""
        output, weights = super().forward(query, key, value, key_padding_mask, **kwargs)
        if self.gold_parents is not None:
            output = output + self._gold_correction(query, key_padding_mask, self.gold_parents)
        return output, weights

    def _gold_correction(self, x: Tensor, padding_mask: Tensor | None, parents: Tensor) -> Tensor:
        """Return what the output gains, ``(T, B, D)``, when labelled rows attend to their parent.

        The output is linear in each head's attention, so the difference of the two attentions
        goes through the head's values and its columns of the output projection.
        """
        predicted = self.dependencies(x, padding_mask)
        gold = F.one_hot(parents.clamp_min(0), x.size(0)).unsqueeze(1).to(predicted)
        change = (gold - predicted) * (parents >= 0)[:, None, :, None]
        context = change.to(x) @ self._project(x, self.v_proj)
        context = context.permute(2, 0, 1, 3).flatten(2)
        return F.linear(context, self.out_proj.weight[:, : context.size(-1)])
