"""Transformer layers whose attention has syntactic heads."""

from __future__ import annotations

from typing import Any

from fairseq.distributed import fsdp_wrap
from fairseq.modules import MultiheadAttention
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from fairseq.modules.transformer_layer import (
    TransformerDecoderLayerBase,
    TransformerEncoderLayerBase,
)
from torch import Tensor, nn

from ..modules import BackwardCrossAttention, SyntaxAttention, TreeCrossAttention
from . import config

#: Copies of weights that official fairseq 0.12.2 hands, in evaluation, to a PyTorch kernel.
KERNEL_COPIES = [
    f"{name}_{kind}"
    for name in ("in_proj", "out_proj", "fc1", "fc2")
    for kind in ("weight", "bias")
]


class SyntaxEncoderLayer(TransformerEncoderLayerBase):
    """fairseq's encoder layer; the ``number``-th, counted from 1, of its stack.

    In evaluation, official fairseq's layer is a PyTorch kernel, which knows no U. Here it is not
    used, and the copies of the weights for it, which training would have no gradient for, are gone.
    """

    def __init__(self, cfg: Any, number: int) -> None:
        self.number = number
        super().__init__(cfg)
        for name in KERNEL_COPIES:
            self._parameters.pop(name, None)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Load as any module does: official fairseq would fill in the copies."""
        for name in KERNEL_COPIES:
            state_dict.pop(prefix + name, None)
        nn.Module._load_from_state_dict(self, state_dict, prefix, *rest)

    def build_self_attention(self, embed_dim: int, cfg: Any) -> MultiheadAttention:
        """Build fairseq's self-attention, or the one with syntactic heads."""
        kinds: dict[str, Any] = _gates(cfg, self.number)
        if self.number == cfg.encoder_dependency_layer:
            kinds |= _dependency_heads(cfg, cfg.encoder_parser)
        if self.number in config.layers_of(cfg, "local_layers", "encoder"):
            kinds["window"] = cfg.local_window
        if scaled := config.pascal_heads(cfg, self.number):
            kinds["parent_scaled_heads"] = scaled
        if not kinds:
            return super().build_self_attention(embed_dim, cfg)
        return _syntax_attention(embed_dim, cfg.encoder.attention_heads, cfg, kinds)


class SyntaxDecoderLayer(TransformerDecoderLayerBase):
    """fairseq's decoder layer; the ``number``-th, counted from 1, of its stack."""

    def __init__(self, cfg: Any, no_encoder_attn: bool, number: int) -> None:
        self.number = number
        self.shows_attention = number in config.layers_of(cfg, "distance_sync_layers", "decoder")
        self.is_backward_layer = number == cfg.sync_layer and cfg.sync_backward == "softmax"
        super().__init__(cfg, no_encoder_attn)

    def build_self_attention(
        self, embed_dim: int, cfg: Any, add_bias_kv: bool = False, add_zero_attn: bool = False
    ) -> MultiheadAttention:
        """Build fairseq's self-attention, or the one with syntactic heads."""
        kinds: dict[str, Any] = _gates(cfg, self.number)
        if self.number == cfg.decoder_dependency_layer:
            kinds |= _dependency_heads(cfg, cfg.decoder_parser)
        if not kinds:
            return super().build_self_attention(embed_dim, cfg, add_bias_kv, add_zero_attn)
        return _syntax_attention(embed_dim, cfg.decoder.attention_heads, cfg, kinds)

    def forward(self, *args: Any, need_attn: bool = False, **kwargs: Any) -> Any:
        """Decode as fairseq does; show the cross-attention also where a loss looks at it."""
        shown = need_attn or (self.shows_attention and self.training)
        return super().forward(*args, need_attn=shown, **kwargs)

    def build_encoder_attention(self, embed_dim: int, cfg: Any) -> MultiheadAttention:
        """Build fairseq's cross-attention, or the one that is backward or syntax-directed too."""
        options = {
            "kdim": cfg.encoder.embed_dim,
            "vdim": cfg.encoder.embed_dim,
            "dropout": cfg.attention_dropout,
            "encoder_decoder_attention": True,
            "q_noise": self.quant_noise,
            "qn_block_size": self.quant_noise_block_size,
        }
        heads = cfg.decoder.attention_heads
        if self.is_backward_layer:
            return BackwardCrossAttention(embed_dim, heads, **options)
        if self.number == config.tree_layer(cfg):
            options["tree_heads"] = config.tree_heads(cfg)
            options["tree_window"] = cfg.cross_attention_tree_window
            options["tree_position"] = cfg.cross_attention_tree_position
            return TreeCrossAttention(embed_dim, heads, **options)
        return super().build_encoder_attention(embed_dim, cfg)


def _dependency_heads(cfg: Any, parser: str) -> dict[str, Any]:
    return {
        "dependency_heads": cfg.dependency_heads,
        "parser": parser,
        "key_bias": cfg.dependency_key_bias,
    }


def _gates(cfg: Any, number: int) -> dict[str, Any]:
    if number not in config.layers_of(cfg, "distance_layers", "encoder", "decoder"):
        return {}
    return {"look_back": cfg.distance_look_back, "temperature": cfg.gate_temperature}


def _syntax_attention(
    embed_dim: int, heads: int, cfg: Any, kinds: dict[str, Any]
) -> SyntaxAttention:
    return SyntaxAttention(
        embed_dim,
        heads,
        dropout=cfg.attention_dropout,
        self_attention=True,
        q_noise=cfg.quant_noise.pq,
        qn_block_size=cfg.quant_noise.pq_block_size,
        **kinds,
    )


def wrap(layer: nn.Module, cfg: Any) -> nn.Module:
    """Apply activation checkpointing and FSDP, as fairseq does to its own layers."""
    if cfg.checkpoint_activations:
        layer = checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations)
    return fsdp_wrap(
        layer, min_num_params=0 if cfg.checkpoint_activations else cfg.min_params_to_wrap
    )


def attention_input(layer: Any, x: Tensor) -> Tensor:
    """Return what a layer's self-attention is given, ``(T, B, D)``, from the layer's own input.

    What the losses look at is computed from this, and not by the layer on its way, so that
    gradients flow whether or not the layer's activations are checkpointed.
    """
    return layer.self_attn_layer_norm(x) if layer.normalize_before else x
