"""Self-attention of which some heads are syntactic."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor
from torch.nn import functional as F

from ..functional import biaffine_scores, parent_scaled_scores, parser_scores
from .biaffine_query import BiaffineQuery


class SyntaxAttention(MultiheadAttention):
    """fairseq's multi-head self-attention with syntactic heads among its heads.

    The first heads are dependency heads, parsers whose attention is trained on parses: bi-affine
    (DBSA, SyncAttn Eq. 4) or LISA's. The last heads are parent-scaled (PASCAL Eq. 1-2): they are
    given the parse. Those between are ordinary.

    Bi-affine heads live in the query projection and leave fairseq's code, and its fused kernel, as
    they are. The probabilities of dependency heads are computed apart by :meth:`dependencies`, for
    the losses and for printing.

    Args:
        dependency_heads: how many heads, counted from the first, are parsers.
        lisa: they are LISA's parsers. Encoder only, as are parent-scaled heads.
        key_bias: add a bias for each key to the parsers' scores.
        parent_scaled_heads: how many heads, counted from the last, are parent-scaled.
        *args, **kwargs: as for :class:`fairseq.modules.MultiheadAttention`.
    """

    def __init__(
        self,
        *args: Any,
        dependency_heads: int = 0,
        lisa: bool = False,
        key_bias: bool = False,
        parent_scaled_heads: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.dependency_heads = dependency_heads
        self.parent_scaled_heads = parent_scaled_heads
        self.lisa = lisa
        if dependency_heads:
            self.q_proj: Any = BiaffineQuery(self.q_proj, dependency_heads, self.head_dim, key_bias)
        #: Gold parents, (B, T) columns, -1 = none; set for one forward pass by the encoder.
        self.gold_parents: Tensor | None = None
        #: PASCAL's D, (B, T, T); set for one forward pass by the encoder.
        self.parent_weights: Tensor | None = None

    def dependencies(
        self, x: Tensor, padding_mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Say where the dependency heads attend.

        Args:
            x: input of the attention, ``(T, B, D)`` as fairseq has it.
            padding_mask: ``(B, T)``, True = padding.
            causal: rows see no column to their right.

        Returns:
            ``(B, h, T, T)`` probabilities in float32 (or wider), row = dependent.
        """
        query, key = self._project(x, self.q_proj.linear), self._project(x, self.k_proj)
        score = parser_scores if self.lisa else biaffine_scores
        scores = score(query, key, self.q_proj.biaffine_weight, self.q_proj.biaffine_bias)
        if causal:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(future, torch.finfo(scores.dtype).min)
        return _softmax(scores, padding_mask)

    def _project(self, x: Tensor, linear: torch.nn.Linear) -> Tensor:
        """Project ``(T, B, D)`` to the dependency heads only, ``(B, h, T, d)``."""
        width = self.dependency_heads * self.head_dim
        return self._split(F.linear(x, linear.weight[:width], linear.bias[:width]))

    def _split(self, projected: Tensor) -> Tensor:
        """Split ``(T, B, h d)`` into heads, ``(B, h, T, d)``."""
        return projected.unflatten(-1, (-1, self.head_dim)).permute(1, 2, 0, 3)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        key_padding_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend; where every head is as fairseq has it, as fairseq does."""
        # Bi-affine heads are ordinary ones with another query, unless they are told where to look.
        apart = self.lisa or self.gold_parents is not None
        parsers = self.dependency_heads if apart else 0
        if not (parsers or self.parent_scaled_heads):
            return super().forward(query, key, value, key_padding_mask, **kwargs)
        return self._attend_by_kind(query, key_padding_mask, parsers), None

    def _attend_by_kind(self, x: Tensor, padding_mask: Tensor | None, parsers: int) -> Tensor:
        """Attend with each kind of heads in its own way, ``(T, B, D)`` to the same."""
        query, key, value = (
            self._split(project(x)) for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        scaled = self.num_heads - self.parent_scaled_heads
        contexts = []
        if parsers:
            attention = self._attention_to_heads(x, padding_mask)
            contexts.append(self._average(attention, value[:, :parsers]))
        if parsers < scaled:
            ordinary = slice(parsers, scaled)
            contexts.append(
                F.scaled_dot_product_attention(
                    query[:, ordinary],
                    key[:, ordinary],
                    value[:, ordinary],
                    attn_mask=None if padding_mask is None else ~padding_mask[:, None, None, :],
                    dropout_p=self.dropout_module.p if self.training else 0.0,
                )
            )
        if scaled < self.num_heads:
            assert self.parent_weights is not None, "the encoder sets it"
            scores = parent_scaled_scores(
                query[:, scaled:], key[:, scaled:], self.parent_weights.unsqueeze(1)
            )
            contexts.append(self._average(_softmax(scores, padding_mask), value[:, scaled:]))
        context = torch.cat(contexts, dim=1)
        return self.out_proj(context.permute(2, 0, 1, 3).flatten(2))

    def _attention_to_heads(self, x: Tensor, padding_mask: Tensor | None) -> Tensor:
        """Return the dependency heads' attention, ``(B, h, T, T)``, gold where that is given."""
        predicted = self.dependencies(x, padding_mask)
        if self.gold_parents is None:
            return predicted
        gold = F.one_hot(self.gold_parents.clamp_min(0), x.size(0)).unsqueeze(1).to(predicted)
        return torch.where((self.gold_parents >= 0)[:, None, :, None], gold, predicted)

    def _average(self, attention: Tensor, value: Tensor) -> Tensor:
        return self.dropout_module(attention.to(value.dtype)) @ value


def _softmax(scores: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Normalise ``(B, h, T, T)`` scores over the columns that are no padding."""
    if padding_mask is not None:
        lowest = torch.finfo(scores.dtype).min
        scores = scores.masked_fill(padding_mask[:, None, None, :], lowest)
    return scores.softmax(dim=-1)
