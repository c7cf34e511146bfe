"""Cross-attention (to the source) composed of heads of several kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional as F

from .heads.heads import split_heads
from .positions.positions import Order
from .syntax_attention import HeadGroups, additive_mask

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class CrossHeadGroups(HeadGroups):
    """Cross-attention whose groups of heads attend to the source in different ways."""

    def attend_to(
        self,
        x: Float[Tensor, "rows batch inputs"],
        source: Float[Tensor, "tokens batch sourceinputs"] | None,
        padding_mask: Bool[Tensor, "batch tokens"] | None,
        state: dict[str, Tensor] | None = None,
        returns_attention: bool = False,
    ) -> tuple[
        Float[Tensor, "rows batch inputs"], Float[Tensor, "batch allheads rows tokens"] | None
    ]:
        """Attend from target states to the source, with every group of heads.

        Args:
            x: the states of target tokens; in incremental decoding only the newest token's.
            source: the encoder's output; read by the first step only, and None for no source.
            padding_mask: of the source, True = padding; None for none.
            state: in incremental decoding, what earlier steps left for this one, with the sentence
                as first dimension, so that it can be reordered with the beam; it is updated.
            returns_attention: whether to return the probabilities as well.

        Returns:
            The outputs, like x, and the probabilities of all heads, or None.
        """
        query_projection, *others = self._projections()
        query = split_heads(F.linear(x, *query_projection), self.head_dim)
        if state is not None and "prev_key" in state:
            key, value = state["prev_key"], state["prev_value"]
        else:
            assert source is not None
            key, value = (split_heads(F.linear(source, *p), self.head_dim) for p in others)
            if state is not None:
                state.update({"prev_key": key, "prev_value": value})
        if padding_mask is None:
            padding_mask = torch.zeros_like(key[:, 0, :, 0], dtype=torch.bool)
        counts = [group.count for group, _ in self.groups]
        split = (part.split(counts, dim=1) for part in (query, key, value))
        return self._attend_by_group(
            list(zip(*split, strict=True)),
            x,
            additive_mask(padding_mask, None, query.dtype),
            padding_mask,
            causal=False,
            state=state,
            orders=lambda heads: Order(),
            returns_attention=returns_attention,
        )
