"""Self-attention of which some heads are syntactic."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor
from torch.nn import functional as F

from ..functional import biaffine_scores, parent_scaled_scores, parser_scores
from ..functional._numerics import dot_products
from .biaffine_query import BiaffineQuery
from .distance_gates import DistanceGates


class SyntaxAttention(MultiheadAttention):
    """fairseq's multi-head self-attention with syntactic heads among its heads.

    The first heads are dependency heads, parsers whose attention is trained on parses: bi-affine
    (DBSA, SyncAttn Eq. 4) or LISA's; or ordinary ones that a loss looks at. The last heads are
    parent-scaled (PASCAL Eq. 1-2): they are given the parse. Those between are gated by syntactic
    distances (LPSI Eq. 4-6), or see a window only, or are ordinary.

    Bi-affine heads live in the query projection and leave fairseq's code, and its fused kernel, as
    they are. The probabilities of dependency heads are computed apart by :meth:`dependencies`, for
    the losses and for printing, and so are distances by :meth:`distances`.

    Args:
        dependency_heads: how many heads, counted from the first, are parsers.
        parser: what they are: ``biaffine``, ``lisa`` or, ordinary, ``dot``. LISA's are for the
            encoder only, as are parent-scaled heads and windows.
        key_bias: add a bias for each key to the parsers' scores; not to those of ordinary heads.
        parent_scaled_heads: how many heads, counted from the last, are parent-scaled.
        look_back: of the distances (M); None for no gates.
        temperature: of the gates (τ).
        window: a word sees this many to either side; None for all.
        *args, **kwargs: as for :class:`fairseq.modules.MultiheadAttention`.
    """

    def __init__(
        self,
        *args: Any,
        dependency_heads: int = 0,
        parser: str = "biaffine",
        key_bias: bool = False,
        parent_scaled_heads: int = 0,
        look_back: int | None = None,
        temperature: float = 1.0,
        window: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.dependency_heads = dependency_heads
        self.parser = parser
        self.parent_scaled_heads = parent_scaled_heads
        self.window = window
        self.between = slice(dependency_heads, self.num_heads - parent_scaled_heads)
        if dependency_heads and parser != "dot":
            self.q_proj: Any = BiaffineQuery(self.q_proj, dependency_heads, self.head_dim, key_bias)
        heads = self.between.stop - self.between.start
        self.gates = None
        if look_back is not None and heads:
            self.gates = DistanceGates(heads, self.head_dim, look_back, temperature)
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
        key = self._project(x, self.k_proj)
        if self.parser == "dot":
            scores = dot_products(self._project(x, self.q_proj), key)
        else:
            score = parser_scores if self.parser == "lisa" else biaffine_scores
            query = self._project(x, self.q_proj.linear)
            scores = score(query, key, self.q_proj.biaffine_weight, self.q_proj.biaffine_bias)
        if causal:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(future, torch.finfo(scores.dtype).min)
        return _softmax(scores, padding_mask)

    def distances(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Return the syntactic distances of the gated heads (LPSI Eq. 4).

        Args:
            x: input of the attention, ``(T, B, D)``.
            padding_mask: ``(B, T)``, True = padding.

        Returns:
            ``(B, h, T)`` in float32 (or wider).
        """
        assert self.gates is not None, "only gated heads have distances"
        rows = slice(self.between.start * self.head_dim, self.between.stop * self.head_dim)
        keys = F.linear(x, self.k_proj.weight[rows], self.k_proj.bias[rows])
        return self.gates(self._split(keys), padding_mask)

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
        incremental_state: Any = None,
        attn_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend; where every head is as fairseq has it, as fairseq does."""
        # Bi-affine heads are ordinary ones with another query, unless they are told where to look.
        apart = self.dependency_heads > 0 and (
            self.parser == "lisa" or self.gold_parents is not None
        )
        restricted = self.gates is not None or self.window is not None
        if not (apart or restricted or self.parent_scaled_heads):
            return super().forward(
                query,
                key,
                value,
                key_padding_mask,
                incremental_state=incremental_state,
                attn_mask=attn_mask,
                **kwargs,
            )
        output = self._attend_by_kind(query, key_padding_mask, incremental_state, attn_mask, apart)
        return output, None

    def _attend_by_kind(
        self,
        x: Tensor,
        padding_mask: Tensor | None,
        incremental_state: Any,
        attn_mask: Tensor | None,
        apart: bool,
    ) -> Tensor:
        """Attend with each kind of heads in its own way, ``(T, B, D)`` to the same."""
        query, key, value = (
            self._split(project(x)) for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        first, last = slice(0, self.between.start), slice(self.between.stop, None)
        distances = None
        if incremental_state is not None:
            key, value, distances = self._remember(key, value, incremental_state)
            padding_mask = None  # of the last token; what was decoded has none
        elif self.gates is not None:
            distances = self.gates(key[:, self.between], padding_mask)
        mask = _additive(padding_mask, attn_mask, query.dtype)

        contexts = []
        if apart:
            attention = self._attention_to_heads(x, padding_mask)
            contexts.append(self._average(attention, value[:, first]))
        elif self.dependency_heads:
            contexts.append(self._attend(query[:, first], key[:, first], value[:, first], mask))
        if self.between.start < self.between.stop:
            q, k, v = (states[:, self.between] for states in (query, key, value))
            causal = attn_mask is not None
            contexts.append(self._attend(q, k, v, self._restrict(mask, q, distances, causal)))
        if self.parent_scaled_heads:
            assert self.parent_weights is not None, "the encoder sets it"
            scores = parent_scaled_scores(
                query[:, last], key[:, last], self.parent_weights.unsqueeze(1)
            )
            contexts.append(self._average(_softmax(scores, padding_mask), value[:, last]))
        context = torch.cat(contexts, dim=1)
        return self.out_proj(context.permute(2, 0, 1, 3).flatten(2))

    def _remember(
        self, key: Tensor, value: Tensor, incremental_state: Any
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Put the new state behind those of earlier steps; return the states and distances of all.

        What is kept is kept by sentence in the first dimension: fairseq reorders it with the beam.
        """
        before = self._get_input_buffer(incremental_state)
        if before:
            key = torch.cat([before["prev_key"], key], dim=2)
            value = torch.cat([before["prev_value"], value], dim=2)
        kept = {"prev_key": key, "prev_value": value}
        if self.gates is not None:
            kept["prev_distances"] = self.gates.continued(
                before.get("prev_distances"), key[:, self.between]
            )
        self._set_input_buffer(incremental_state, kept)
        return key, value, kept.get("prev_distances")

    def _restrict(
        self, mask: Tensor | None, query: Tensor, distances: Tensor | None, causal: bool
    ) -> Tensor | None:
        """Add to a mask what gates or a window leave of the view of the heads between."""
        if self.gates is not None and distances is not None:
            rows = query.size(2)
            gates = self.gates.log_gates(distances, rows, causal).to(query.dtype)
            mask = gates if mask is None else mask + gates
        if self.window is not None:
            seen = torch.ones(query.size(2), query.size(2), dtype=torch.bool, device=query.device)
            outside = ~seen.triu(-self.window).tril(self.window)
            band = query.new_zeros(outside.shape).masked_fill(outside, -torch.inf)
            mask = band if mask is None else mask + band
        return mask

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        return F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            dropout_p=self.dropout_module.p if self.training else 0.0,
        )

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


def _additive(
    padding_mask: Tensor | None, attn_mask: Tensor | None, dtype: torch.dtype
) -> Tensor | None:
    """Make one mask, to be added to the scores, of fairseq's two."""
    mask = None if attn_mask is None else attn_mask.to(dtype)
    if padding_mask is not None:
        padding = torch.zeros_like(padding_mask, dtype=dtype).masked_fill(padding_mask, -torch.inf)
        mask = padding[:, None, None, :] if mask is None else mask + padding[:, None, None, :]
    return mask
