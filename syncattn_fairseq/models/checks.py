"""What options of the syntax Transformer must be, and which go together."""

from __future__ import annotations

from typing import Any

from .config import layers_of, pascal_heads, tree_layer


def check(cfg: Any) -> None:
    """Raise ``ValueError`` for what the model does not have, such as a layer too high."""
    _check_dependency_heads(cfg)
    _check_synchronisation(cfg)
    _check_distances(cfg)
    _check_parents_and_labels(cfg)
    _check_tree_window(cfg)


def _check_dependency_heads(cfg: Any) -> None:
    for side in ("encoder", "decoder"):
        layers, heads = getattr(cfg, side).layers, getattr(cfg, side).attention_heads
        between(cfg, f"{side}_dependency_layer", 0, layers, f"the {side} has layers 1 to {layers}")
        if getattr(cfg, f"{side}_dependency_layer"):
            between(cfg, "dependency_heads", 1, heads, f"the {side} has {heads} heads a layer")


def _check_synchronisation(cfg: Any) -> None:
    layers = cfg.decoder.layers
    for option in ("sync_layer", "alignment_layer"):
        between(cfg, option, 0, layers, f"the decoder has layers 1 to {layers}")
    if cfg.sync_layer and not (cfg.encoder_dependency_layer and cfg.decoder_dependency_layer):
        raise ValueError(
            "--sync-layer ties the dependency heads of encoder and decoder: "
            "set --encoder-dependency-layer and --decoder-dependency-layer too"
        )
    if cfg.sync_layer and cfg.alignment_layer not in (0, cfg.sync_layer):
        raise ValueError("--alignment-layer is the sync layer where there is one: leave it out")


def _check_distances(cfg: Any) -> None:
    gated = layers_of(cfg, "distance_layers", "encoder", "decoder")
    synchronised = layers_of(cfg, "distance_sync_layers", "decoder")
    if synchronised and len(synchronised) != len(gated):
        raise ValueError(
            f"--distance-sync-layers {cfg.distance_sync_layers}: one is needed for each of "
            f"--distance-layers {cfg.distance_layers}"
        )
    if both := set(gated) & set(layers_of(cfg, "local_layers", "encoder")):
        raise ValueError(
            f"--local-layers {cfg.local_layers}: the heads of layer {min(both)} are gated already"
        )
    for option in ("distance_look_back", "local_window"):
        between(cfg, option, 0, float("inf"), "must be 0 or more")


def _check_parents_and_labels(cfg: Any) -> None:
    for layer in layers_of(cfg, "pascal_layers", "encoder"):
        pascal_heads(cfg, layer)
    if cfg.pascal_std < 0:
        raise ValueError(f"--pascal-std {cfg.pascal_std}: must be 0 or above")
    between(cfg, "parent_ignoring", 0, 1, "a probability, 0 to 1")
    width = cfg.encoder.embed_dim
    between(cfg, "source_label_dim", 0, width - 1, f"the source embedding has {width} dimensions")


def _check_tree_window(cfg: Any) -> None:
    layers, heads = cfg.decoder.layers, cfg.decoder.attention_heads
    between(cfg, "cross_attention_tree_window", 0, float("inf"), "must be 0 or more")
    layer_help = f"the decoder has layers 1 to {layers}"
    between(cfg, "cross_attention_tree_layer", 0, layers, layer_help)
    head_help = f"the decoder has {heads} heads a layer"
    between(cfg, "cross_attention_tree_heads", 0, heads, head_help)
    if cfg.sync_layer and cfg.sync_backward == "softmax" and cfg.sync_layer == tree_layer(cfg):
        raise ValueError(
            f"--cross-attention-tree-layer {tree_layer(cfg)}: not in the sync layer where "
            "--sync-backward is softmax; choose another"
        )


def between(cfg: Any, option: str, lowest: float, highest: float, explanation: str) -> None:
    """Raise ``ValueError`` for an option that is lower or higher."""
    value = getattr(cfg, option)
    if not lowest <= value <= highest:
        raise ValueError(f"--{option.replace('_', '-')} {value}: {explanation}")
