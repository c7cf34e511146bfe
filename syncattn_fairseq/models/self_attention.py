"""fairseq's self-attention, composed of heads of several kinds."""

from typing import Any

from fairseq.modules import MultiheadAttention
from torch import Tensor

from ..modules.heads import Heads
from ..modules.positions import Positions
from ..modules.syntax_attention import HeadGroups


class FairseqSyntaxAttention(HeadGroups, MultiheadAttention):
    """fairseq's multi-head self-attention, where each group of heads attends in its own way.

    If all groups attend like ordinary heads, at most with rewritten queries, and positions change
    neither scores nor states, fairseq's code and its fused kernel do the work.

    Args:
        heads, positions: as for :class:`.SyntaxAttention`.
        args, kwargs: as for :class:`fairseq.modules.MultiheadAttention`.
    """

    _get_input_buffer: Any
    _set_input_buffer: Any

    def __init__(
        self, *args: Any, heads: dict[str, Heads], positions: Positions | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.compose(heads, positions)

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
        if incremental_state is None:
            return self.attend(query, key_padding_mask, attn_mask), None
        state = dict(self._get_input_buffer(incremental_state))
        context = self.attend(query, key_padding_mask, attn_mask, state)
        self._set_input_buffer(incremental_state, state)
        return context, None
