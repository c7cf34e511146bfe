"""Self-attention composed of heads of several kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from .folded_linear import FoldedLinear
from .heads.heads import Heads, Scope, States, split_heads
from .positions.positions import Order, Positions


class SyntaxAttention(MultiheadAttention):
    """fairseq's multi-head self-attention, where each group of heads attends in its own way.

    If all groups attend like ordinary heads, at most with rewritten queries, and positions change
    neither scores nor states, fairseq's code and its fused kernel do the work.

    Args:
        heads: the groups by name, in the order of the heads; together, all heads of the layer.
        positions: what they know of the order of the tokens; None if it is in the tokens, or
            nowhere.
        args, kwargs: as for :class:`fairseq.modules.MultiheadAttention`.
    """

    def __init__(
        self,
        *args: Any,
        heads: dict[str, Heads],
        positions: Positions | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.heads = nn.ModuleDict(heads)
        self.positions = positions
        assert sum(group.count for group in heads.values()) == self.num_heads
        if any(type(group).rewrite_query is not Heads.rewrite_query for group in heads.values()):
            self.q_proj: Any = FoldedLinear(self.q_proj, self._rewrite_queries)

    @property
    def groups(self) -> Iterator[tuple[Any, slice]]:
        """The groups and their heads' numbers, in order."""
        first = 0
        group: Any
        for group in self.heads.values():
            yield group, slice(first, first + group.count)
            first += group.count

    def _rows(self, heads: slice) -> slice:
        """Return the rows of a projection that belong to these heads."""
        return slice(heads.start * self.head_dim, heads.stop * self.head_dim)

    def _rewrite_queries(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        rewritten = [
            group.rewrite_query(weight[self._rows(heads)], bias[self._rows(heads)])
            for group, heads in self.groups
        ]
        weights, biases = zip(*rewritten, strict=True)
        return torch.cat(weights), torch.cat(biases)

    def show(
        self, name: str, x: Tensor, padding_mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Compute what heads show by this name.

        Args:
            name: see :attr:`.Heads.shown`.
            x: input of the attention, ``(T, B, D)`` as in fairseq.
            padding_mask: ``(B, T)``, True = padding.
            causal: whether rows see no column to their right.

        Returns:
            ``(B, h, ...)``, see :meth:`.Heads.show`.
        """
        shown, length = [], x.size(0)
        orders = self._order(length, length, x.device)
        for group, heads in self.groups:
            if group.shown == name:
                rows = self._rows(heads)
                query, bias = getattr(self.q_proj, "plain", (self.q_proj.weight, self.q_proj.bias))
                queries = query[rows], bias[rows]
                keys = self.k_proj.weight[rows], self.k_proj.bias[rows]
                states = States(x, queries, keys, self.head_dim, orders(heads))
                shown.append(group.show(states, padding_mask, causal))
        return torch.cat(shown, dim=1)

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
        """Attend; leave it to fairseq if every head is like fairseq's."""
        if self.positions is None and all(group.fused for group, _ in self.groups):
            return super().forward(
                query,
                key,
                value,
                key_padding_mask,
                incremental_state=incremental_state,
                attn_mask=attn_mask,
                **kwargs,
            )
        return self._attend_by_kind(query, key_padding_mask, incremental_state, attn_mask), None

    def _order(self, rows: int, columns: int, device: torch.device) -> Callable[[slice], Order]:
        """Return a function from the numbers of some heads to the order that they see."""
        if self.positions is None:
            return lambda heads: Order()
        bias = self.positions.bias(rows, columns, device)
        return lambda heads: Order(self.positions, None if bias is None else bias[heads])

    def _attend_by_kind(
        self,
        x: Tensor,
        padding_mask: Tensor | None,
        incremental_state: Any,
        attn_mask: Tensor | None,
    ) -> Tensor:
        """Attend with each kind of heads in its own way, ``(T, B, D)`` to ``(T, B, D)``.

        What is kept between the steps of incremental decoding has the sentence as first dimension,
        so that fairseq can reorder it with the beam.
        """
        query, key, value = (
            split_heads(project(x), self.head_dim)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        kept: dict[str, Tensor] = {}
        if incremental_state is not None:
            kept = self._get_input_buffer(incremental_state)
            if kept:
                key = torch.cat([kept["prev_key"], key], dim=2)
                value = torch.cat([kept["prev_value"], value], dim=2)
            kept = {**kept, "prev_key": key, "prev_value": value}
            padding_mask = None  # the last token's; decoded tokens have none
        mask = _additive(padding_mask, attn_mask, query.dtype)

        orders = self._order(query.size(2), key.size(2), x.device)
        causal, contexts = attn_mask is not None, []
        for name, (group, heads) in zip(self.heads, self.groups, strict=True):
            scope = Scope(mask, padding_mask, causal, self.dropout_module)
            scope.order, scope.x = orders(heads), x
            if incremental_state is not None:
                own = [field for field in kept if field.startswith(f"{name}.")]
                scope.kept = {field.removeprefix(f"{name}."): kept[field] for field in own}
            contexts.append(group.attend(query[:, heads], key[:, heads], value[:, heads], scope))
            kept.update({f"{name}.{field}": state for field, state in (scope.kept or {}).items()})
        if incremental_state is not None:
            self._set_input_buffer(incremental_state, kept)
        context = torch.cat(contexts, dim=1)
        return self.out_proj(context.permute(2, 0, 1, 3).flatten(2))


def _additive(
    padding_mask: Tensor | None, attn_mask: Tensor | None, dtype: torch.dtype
) -> Tensor | None:
    """Merge fairseq's two masks into one that is added to the scores."""
    mask = None if attn_mask is None else attn_mask.to(dtype)
    if padding_mask is not None:
        padding = torch.zeros_like(padding_mask, dtype=dtype).masked_fill(padding_mask, -torch.inf)
        mask = padding[:, None, None, :] if mask is None else mask + padding[:, None, None, :]
    return mask
