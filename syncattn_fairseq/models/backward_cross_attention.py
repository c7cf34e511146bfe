"""Cross-attention that also shows how the source attends to the target (NLP 2021, Eq. 11)."""

from dataclasses import dataclass
from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from ..base.errors import DataError
from ..base.option_fields import option
from ..modules.batch_view import BatchView
from ..modules.layer_numbers import read_layer
from ..modules.part import Part, register_part


@dataclass
class SyncOptions:
    """SyncAttn: where and how the dependency heads of both sides are tied."""

    sync_layer: int = option(
        0, "decoder layer whose cross-attention ties both sides (0 = no such loss)"
    )
    sync_backward: str = option(
        "transpose",
        "from source to target: the transposed cross-attention (SyncAttn Eq. 7) or a "
        "softmax over the target positions (NLP 2021, Eq. 11)",
        choices=("transpose", "softmax"),
    )


@register_part("sync")
class BackwardCrossAttention(Part, MultiheadAttention):
    """fairseq's cross-attention with backward attention as an additional output of teacher forcing.

    The backward attention is the softmax over the target positions of the transposed logits. It is
    returned with the ordinary one, in the same tensor ``(H, B, T, 2 S)``: first T × S
    probabilities over the source, then T × S probabilities over the target (each of the latter's
    columns sums to one). It is one tensor because fairseq's decoder layer passes on nothing else,
    with or without activation checkpointing.
    """

    Options = SyncOptions

    def __init__(self, *args: Any, view: BatchView, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.view = view

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Check that there are heads to tie."""
        layer = read_layer(cfg, "sync_layer", "decoder")
        if layer and not (cfg.encoder_dependency_layer and cfg.decoder_dependency_layer):
            raise DataError(
                "--sync-layer ties the dependency heads of encoder and decoder: "
                "set --encoder-dependency-layer and --decoder-dependency-layer too"
            )

    @classmethod
    def stands_in(cls, cfg: Any, layer: int) -> bool:
        """Tell whether a decoder layer, counted from 1, has this cross-attention."""
        return layer == cfg.sync_layer and cfg.sync_backward == "softmax"

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
        logits = logits.masked_fill(self.view.padding_mask[:, None, :, None], lowest)
        # Columns of source padding are -inf throughout: uniform here, and E's columns there are 0.
        backward = logits.clamp_min(lowest).softmax(dim=-2)
        both = torch.cat([forward.view_as(backward), backward], dim=-1)
        return output, both.transpose(0, 1)
