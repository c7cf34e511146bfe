"""Cross-attention that also shows how the source attends to the target (NLP 2021, Eq. 11)."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor


class BackwardCrossAttention(MultiheadAttention):
    """fairseq's cross-attention that, in teacher forcing, returns its backward attention as well.

    The backward attention is the softmax over the target positions of the transposed logits. It
    is returned beside the ordinary one, in the same tensor ``(H, B, T, 2 S)``: first T × S
    probabilities over the source, then T × S probabilities over the target (each of the latter's
    columns sums to one). One tensor, because that is all that fairseq's decoder layer hands on,
    with or without activation checkpointing.
    """

    #: (B, T), True = padding; set for one forward pass by the decoder.
    target_padding_mask: Tensor | None = None

    def forward(
        self, query: Tensor, key: Tensor | None, value: Tensor | None, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None]:
        """Attend as fairseq does."""
        teacher_forced = kwargs.get("incremental_state") is None
        if not (teacher_forced and kwargs.get("need_head_weights")):
            return super().forward(query, key, value, **kwargs)

        target_length, batch, width = query.shape
        logits, values = super().forward(query, key, value, before_softmax=True, **kwargs)
        forward = logits.softmax(dim=-1, dtype=torch.float32)
        context = self.dropout_module(forward.type_as(logits)) @ values
        output = self.out_proj(context.transpose(0, 1).reshape(target_length, batch, width))

        logits = logits.view(batch, self.num_heads, target_length, -1).float()
        lowest = torch.finfo(torch.float32).min
        if self.target_padding_mask is not None:
            logits = logits.masked_fill(self.target_padding_mask[:, None, :, None], lowest)
        # Columns of source padding are -inf throughout: uniform here, and E's columns there are 0.
        backward = logits.clamp_min(lowest).softmax(dim=-2)
        both = torch.cat([forward.view_as(backward), backward], dim=-1)
        return output, both.transpose(0, 1)
