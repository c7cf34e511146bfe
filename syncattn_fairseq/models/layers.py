"""Transformer layers whose attention has syntactic heads."""

from dataclasses import replace
from typing import Any

from fairseq.distributed import fsdp_wrap
from fairseq.modules import MultiheadAttention
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from fairseq.modules.transformer_layer import (
    TransformerDecoderLayerBase,
    TransformerEncoderLayerBase,
)
from torch import Tensor, nn

from ..base.errors import DataError
from ..modules import BatchView
from ..modules.cross_attention import CrossHeadGroups
from ..modules.heads import Heads, Slot
from ..modules.heads.slots import divide_layer, find_name
from ..modules.layer_numbers import CROSS, read_layers
from ..modules.positions import POSITIONS, Positions
from ..modules.syntax_attention import HeadGroups


class FairseqSyntaxAttention(HeadGroups, MultiheadAttention):
    """fairseq's multi-head self-attention, with heads of several kinds.

    If all groups attend like ordinary heads, at most with rewritten queries, and positions change
    neither scores nor states, fairseq's code and its fused kernel do the work.
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
        """Compute self-attention, with fairseq's own code if all heads attend like ordinary ones.

        Args:
            query, key, value: fairseq's, ``(T, B, D)``.
            key_padding_mask: ``(B, T)``, True = padding.
            incremental_state: the cache of step-by-step decoding; None for teacher forcing.
            attn_mask: ``(T, T)``, added to the scores.
        """
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


class FairseqCrossAttention(CrossHeadGroups, MultiheadAttention):
    """fairseq's attention of a decoder to the source, with heads of several kinds.

    If all groups attend like ordinary heads, at most with rewritten queries, fairseq's code does
    the work. The groups are added afterwards, by :meth:`compose`, so that parameters which both
    have start with fairseq's random numbers.
    """

    _get_input_buffer: Any
    _set_input_buffer: Any

    @property
    def plain(self) -> bool:
        """Whether fairseq's own attention code computes the same as these heads."""
        return all(group.fused for group, _ in self.groups)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        key_padding_mask: Tensor | None = None,
        incremental_state: Any = None,
        need_weights: bool = True,
        need_head_weights: bool = False,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute cross-attention, with fairseq's own code if all heads attend like ordinary ones.

        Args:
            query: the states of target tokens, ``(T, B, D)``.
            key, value: the encoder's output, ``(S, B, D)``.
            key_padding_mask: of the source, ``(B, S)``, True = padding.
            incremental_state: the cache of step-by-step decoding; None for teacher forcing.
            need_weights: whether to return probabilities, ``(B, T, S)``, averaged over heads.
            need_head_weights: whether to return those of each head, ``(H, B, T, S)``.
        """
        if self.plain:
            return super().forward(
                query,
                key,
                value,
                key_padding_mask,
                incremental_state=incremental_state,
                need_weights=need_weights,
                need_head_weights=need_head_weights,
                **kwargs,
            )
        shown = need_weights or need_head_weights
        step = incremental_state is not None
        state = dict(self._get_input_buffer(incremental_state)) if step else None
        context, attention = self.attend_to(query, key, key_padding_mask, state, shown)
        if step:
            self._set_input_buffer(incremental_state, state)
        if attention is None:
            return context, None
        weights = attention.transpose(0, 1)
        return context, weights if need_head_weights else weights.mean(0)

    def reorder_incremental_state(self, incremental_state: Any, new_order: Tensor) -> Any:
        """Reorder the cached tensors of all heads as the beam's hypotheses were reordered.

        Args:
            incremental_state: the cache.
            new_order: the former number of each hypothesis.
        """
        if self.plain:
            return super().reorder_incremental_state(incremental_state, new_order)
        kept = self._get_input_buffer(incremental_state)
        ordered = {name: tensor.index_select(0, new_order) for name, tensor in kept.items()}
        return self._set_input_buffer(incremental_state, ordered)


#: Names of the weight copies that fairseq 0.12.2 stored in encoder layers for a kernel.
KERNEL_COPIES = [
    f"{name}_{kind}"
    for name in ("in_proj", "out_proj", "fc1", "fc2")
    for kind in ("weight", "bias")
]


class SyntaxEncoderLayer(TransformerEncoderLayerBase):
    """fairseq's encoder layer, with syntactic heads in its self-attention.

    ``number`` is its place in the encoder, counted from 1.
    """

    def __init__(self, cfg: Any, number: int, view: BatchView) -> None:
        self.number = number
        self.view = view
        super().__init__(cfg)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Load weights, except for fairseq 0.12.2's additional copies for a kernel."""
        for name in KERNEL_COPIES:
            state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def build_self_attention(self, embed_dim: int, cfg: Any) -> MultiheadAttention:
        """Build self-attention: with syntactic heads if the layer has any, or else fairseq's."""
        return build_syntax_attention(
            embed_dim, cfg, "encoder", self.number, self.view
        ) or super().build_self_attention(embed_dim, cfg)


class SyntaxDecoderLayer(TransformerDecoderLayerBase):
    """fairseq's decoder layer, with syntactic heads in its self- and cross-attention.

    ``number`` is its place in the decoder, counted from 1.
    """

    #: The attention head, from 1, whose cross-attention is returned; None for all heads.
    chosen_head: int | None = None

    def __init__(self, cfg: Any, no_encoder_attn: bool, number: int, view: BatchView) -> None:
        self.number = number
        self.view = view
        self.ties_distances = number in read_layers(cfg, "distance_sync_layers", "decoder")
        super().__init__(cfg, no_encoder_attn)

    def build_self_attention(
        self, embed_dim: int, cfg: Any, add_bias_kv: bool = False, add_zero_attn: bool = False
    ) -> MultiheadAttention:
        """Build self-attention: with syntactic heads if the layer has any, or else fairseq's.

        Args:
            embed_dim: D, the width of the layer.
            cfg: the options of the model.
            add_bias_kv, add_zero_attn: fairseq's, for its own attention.
        """
        return build_syntax_attention(
            embed_dim, cfg, "decoder", self.number, self.view
        ) or super().build_self_attention(embed_dim, cfg, add_bias_kv, add_zero_attn)

    def forward(self, *args: Any, need_attn: bool = False, **kwargs: Any) -> Any:
        """Run the layer as fairseq does, and return its cross-attention if a loss reads it."""
        if self.ties_distances and (need_attn or self.training or self.need_attn):
            need_attn = kwargs["need_head_weights"] = True
        x, attention, state = super().forward(*args, need_attn=need_attn, **kwargs)
        if self.chosen_head is not None and attention is not None and attention.dim() == 4:
            attention = attention[self.chosen_head - 1].unsqueeze(0)
        return x, attention, state

    def build_encoder_attention(self, embed_dim: int, cfg: Any) -> MultiheadAttention:
        """Build cross-attention: with syntactic heads if the layer has any, or else fairseq's."""
        return build_cross_attention(
            embed_dim, cfg, self.number, self.view
        ) or super().build_encoder_attention(embed_dim, cfg)


def build_syntax_attention(
    embed_dim: int, cfg: Any, side: str, number: int, view: BatchView
) -> FairseqSyntaxAttention | None:
    """Build a layer's self-attention with syntactic heads, or return None if fairseq's will do.

    It is None if all heads are ordinary, and positions are in the token embeddings or nowhere.

    Args:
        embed_dim: D, the width of the layer.
        cfg: the options of the model.
        side: ``encoder`` or ``decoder``.
        number: of the layer, from 1.
        view: the view of the batch shared by the stack.

    Raises:
        DataError: with ``--cross-self-attention``, the decoder's heads would also have to attend to
            the source.
    """
    counts = divide_layer(cfg, side, number)
    total: int = getattr(cfg, side).attention_heads
    layer = Slot(side, number, range(total), total, embed_dim // total, view)
    positions = POSITIONS[cfg.positions].build(cfg, layer)
    if set(counts) == {Heads} and positions.is_plain():
        return None
    if side == "decoder" and cfg.cross_self_attention:
        raise DataError(
            f"--cross-self-attention: decoder layer {number} has heads or --positions that only "
            "attend to the target; leave the option out"
        )
    return FairseqSyntaxAttention(
        embed_dim,
        total,
        heads=_build_heads(cfg, layer, counts),
        positions=None if positions.is_plain() else positions,
        dropout=cfg.attention_dropout,
        self_attention=True,
        q_noise=cfg.quant_noise.pq,
        qn_block_size=cfg.quant_noise.pq_block_size,
    )


def build_cross_attention(
    embed_dim: int, cfg: Any, number: int, view: BatchView
) -> FairseqCrossAttention | None:
    """Build a layer's cross-attention with syntactic heads, or return None if fairseq's will do.

    It is None if all heads are ordinary.

    Args:
        embed_dim: D, the width of the layer.
        cfg: the options of the model.
        number: of the layer, from 1.
        view: the view of the batch shared by the decoder.
    """
    counts = divide_layer(cfg, CROSS, number)
    if set(counts) == {Heads}:
        return None
    total: int = cfg.decoder.attention_heads
    attention = FairseqCrossAttention(
        embed_dim,
        total,
        kdim=cfg.encoder.embed_dim,
        vdim=cfg.encoder.embed_dim,
        dropout=cfg.attention_dropout,
        encoder_decoder_attention=True,
        q_noise=cfg.quant_noise.pq,
        qn_block_size=cfg.quant_noise.pq_block_size,
    )
    layer = Slot(CROSS, number, range(total), total, embed_dim // total, view)
    attention.compose(_build_heads(cfg, layer, counts), None)
    return attention


def _build_heads(cfg: Any, layer: Slot, counts: dict[type[Heads], int]) -> dict[str, Heads]:
    """Build a layer's groups of heads, and return them by the names of their kinds."""
    heads, first = {}, 0
    for kind, count in counts.items():
        slot = replace(layer, numbers=range(first, first + count))
        heads[find_name(kind)] = kind.build(cfg, slot)
        first += count
    return heads


def wrap(layer: nn.Module, cfg: Any) -> nn.Module:
    """Wrap a layer for activation checkpointing and FSDP, as fairseq does with its own layers.

    Activations are stored where a loss reads what heads expose: a checkpoint computes that without
    gradient.
    """
    attentions = [layer.self_attn, getattr(layer, "encoder_attn", None)]
    composed = [attention for attention in attentions if isinstance(attention, HeadGroups)]
    groups = [group for attention in composed for group, _ in attention.groups]
    observed = any(group.is_exposed_in_training(cfg) for group in groups)
    if cfg.checkpoint_activations and not observed:
        layer = checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations)
    return fsdp_wrap(
        layer, min_num_params=0 if cfg.checkpoint_activations else cfg.min_params_to_wrap
    )
