"""Speed up the attention of a decoding step by leaving out what only other calls need.

Fault: all versions reshape, join and check for every use of the attention in each step, for one
token, which takes a processor several times as long as the products.
Test: ``test_attention_steps.py``.
"""

from typing import Any

import torch
from torch import Tensor

from .wrapping import wrap


def mend() -> None:
    """Speed up fairseq's attention in decoding steps by skipping needless reshaping and checks.

    This holds for one token in evaluation, with a decoding state and without masks of its own. The
    results are fairseq's: the same products, in the same order.
    """
    from fairseq.modules.multihead_attention import MultiheadAttention

    dense = MultiheadAttention.apply_sparse_mask

    def is_sparse(attention: Any) -> bool:
        return type(attention).apply_sparse_mask is not dense

    @wrap(MultiheadAttention, "forward")
    def forward(
        attend: Any,
        self: Any,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        key_padding_mask: Tensor | None = None,
        incremental_state: Any = None,
        need_weights: bool = True,
        static_kv: bool = False,
        attn_mask: Tensor | None = None,
        before_softmax: bool = False,
        need_head_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if incremental_state is not None and not self.training and query.size(0) == 1:
            state = self._get_input_buffer(incremental_state)
            plain = attn_mask is None and not before_softmax and not is_sparse(self)
            plain = plain and self.bias_k is None and not self.add_zero_attn
            if plain and "prev_key" in state and not self.onnx_trace:
                if static_kv and self.encoder_decoder_attention:
                    weights = need_weights or need_head_weights
                    return _look_at_source(self, query, state, weights, need_head_weights)
                mask = key_padding_mask is None and state.get("prev_key_padding_mask") is None
                if mask and self.self_attention and not (need_weights or need_head_weights):
                    found = _look_back(self, query, state)
                    self._set_input_buffer(incremental_state, state)
                    return found, None
        return attend(
            self,
            query,
            key,
            value,
            key_padding_mask,
            incremental_state,
            need_weights,
            static_kv,
            attn_mask,
            before_softmax,
            need_head_weights,
        )


def _look_back(self: Any, query: Tensor, state: dict[str, Any]) -> Tensor:
    """Attend to the earlier tokens and this one, ``(1, B, D)``, and add this one to the state."""
    size = query.size(1), self.num_heads, 1, self.head_dim
    scaled = self.q_proj(query).mul_(self.scaling).view(size)
    keys = torch.cat([state["prev_key"], self.k_proj(query).view(size)], 2)
    values = torch.cat([state["prev_value"], self.v_proj(query).view(size)], 2)
    state.update(prev_key=keys, prev_value=values, prev_key_padding_mask=None)
    scores = torch.bmm(scaled.flatten(0, 1), keys.flatten(0, 1).transpose(1, 2))
    weights = torch.softmax(scores, -1, dtype=torch.float32).type_as(scores)
    context = torch.bmm(self.dropout_module(weights), values.flatten(0, 1))
    found: Tensor = self.out_proj(context.view(1, query.size(1), -1))
    return found


def _look_at_source(
    self: Any, query: Tensor, state: dict[str, Tensor], need_weights: bool, of_heads: bool
) -> tuple[Tensor, Tensor | None]:
    """Attend to the source; all hypotheses of a beam may share the keys of the source."""
    keys, values = state["prev_key"], state["prev_value"]
    rows, sentences, heads = query.size(1), keys.size(0), self.num_heads
    scaled = self.q_proj(query).mul_(self.scaling).view(sentences, -1, heads, self.head_dim)
    # Rows of a sentence are together: (sentences * heads, hypotheses, ...).
    scores = torch.bmm(scaled.transpose(1, 2).flatten(0, 1), keys.flatten(0, 1).transpose(1, 2))
    scores = scores.view(sentences, heads, rows // sentences, -1)
    mask = state.get("prev_key_padding_mask")
    if mask is not None:
        scores = scores.masked_fill(mask[:, None, None].to(torch.bool), float("-inf"))
    exact = torch.softmax(scores, -1, dtype=torch.float32)
    weights = self.dropout_module(exact.type_as(scores))
    context = torch.bmm(weights.flatten(0, 1), values.flatten(0, 1))
    context = context.view(sentences, heads, -1, self.head_dim).transpose(1, 2)
    found = self.out_proj(context.reshape(1, rows, -1))
    if not need_weights:
        return found, None
    shown = exact.transpose(1, 2).reshape(rows, heads, 1, -1).transpose(0, 1)
    return found, shown if of_heads else shown.mean(0)
