"""The syntax Transformer's options in addition to fairseq's."""

from argparse import Namespace
from dataclasses import dataclass, fields
from typing import Any, cast

from fairseq.dataclass import FairseqDataclass
from omegaconf import OmegaConf

from ..base.errors import DataError
from ..base.option_fields import as_fairseq, check_numbers, option
from ..data.controls import CONTROLS, NO_TREES
from ..data.fields import SourceFields
from ..modules.heads.slots import list_kinds
from ..modules.layer_numbers import CROSS, SIDES, check_range, read_layer
from ..modules.part import PARTS
from ..modules.positions import POSITIONS


@dataclass
class PositionOptions:
    """Positions: how the layers know the order of the tokens."""

    positions: str = option(
        "absolute",
        "fairseq's position embeddings (absolute) or Marian's (marian); or for all heads of all "
        "layers, and without such embeddings: rotary (RoPE), interleaved (rotary in every other "
        "layer), alibi, bias (learnt, as in T5), or none",
    )


@dataclass
class TreeOptions:
    """Source trees: whether the encoder reads the source's parses or a control's trees."""

    source_trees: str = option(
        "parse",
        "trees that the encoder reads, in training and in decoding: those of the source (parse), "
        "or control trees that say nothing about the source (all other values)",
        choices=("parse", *CONTROLS, "another"),
    )


@dataclass
class EndOptions:
    """Decoder start and output: start vector and output bias as in Marian's models."""

    output_bias: bool = option(False, "add a trained bias to the scores of the target's vocabulary")
    zero_start: bool = option(
        False,
        "let the decoder read the vector of <pad> where a translation starts, in place of </s>; it "
        "is zeros in Marian",
    )


@dataclass
class AlignmentOptions:
    """Alignment: the decoder layer and the attention heads that align words."""

    alignment_layer: int = option(
        0,
        "decoder layer that --print-alignment reads (0 = the sync layer, or else the penultimate "
        "layer)",
    )
    aligned_heads: int = option(
        0,
        "number of cross-attention heads in a layer, counted from the first, that alignments, "
        "losses that tie both sides and the loss on links use (0 = all heads)",
    )


def list_options() -> list[type[FairseqDataclass]]:
    """Return the option classes of the model and of all syntactic parts and position encodings."""
    parts = [part.Options for part in PARTS.values()]
    positions = [kind.Options for kind in POSITIONS.values()]
    own = (PositionOptions, *positions, TreeOptions, EndOptions, AlignmentOptions)
    return [as_fairseq(options) for options in (*parts, *own)]


def set_defaults(args: Any, *options: type[FairseqDataclass]) -> None:
    """Fill in the default of every option missing from ``args``.

    ``options`` are option classes, by default all of the syntax Transformer's.
    """
    for config in options or list_options():
        for field in fields(config):
            if getattr(args, field.name, None) is None and not field.name.startswith("_"):
                setattr(args, field.name, field.default)


def prefer(args: Any, **values: Any) -> None:
    """Set each option to its value in ``values`` unless ``args`` has it already."""
    for name, value in values.items():
        if getattr(args, name, None) is None:
            setattr(args, name, value)


def drop_embedded_positions(args: Any) -> None:
    """Switch fairseq's position embeddings off if ``--positions`` encodes the order otherwise."""
    positions = POSITIONS.get(args.positions)
    if positions is not None and not positions.embedded:
        args.no_token_positional_embeddings = True


def count_layers(value: str, highest: int) -> int:
    """Return the number of layers in an option's value, such as ``1,2``, ``all`` or ``none``."""
    if value == "all":
        return highest
    return 0 if value in ("", "none") else len(value.split(","))


def as_namespace(args: Any) -> Any:
    """Convert options to a namespace: hydra passes a config, but fairseq expects a namespace."""
    if OmegaConf.is_config(args):
        return Namespace(**cast(dict[str, Any], OmegaConf.to_container(args)))
    return args


def aligning_layer(layers: int) -> int:
    """Return the decoder layer, from 1, whose cross-attention aligns words by default.

    It is the penultimate one (l_sync = 5 of 6 in SyncAttn; it aligns better than the last, Garg et
    al., EMNLP 2019). But of two layers it is the upper one: the bottom one sees little more than
    the previous token, and on the built-in corpus a third of its links are wrong, against a tenth.
    """
    return min(layers, max(layers - 1, 2))


def check_model_options(cfg: Any) -> None:
    """Raise ``DataError`` for options unfit for the model, such as a layer too high.

    Heads for which a layer has no room are noticed when that layer is built.
    """
    if cfg.positions not in POSITIONS:
        raise DataError(f"--positions {cfg.positions}: choose one of {', '.join(POSITIONS)}")
    for side in SIDES:
        width, heads = getattr(cfg, side).embed_dim, getattr(cfg, side).attention_heads
        if heads < 1 or width % heads:
            raise DataError(
                f"--{side}-attention-heads {heads}: must divide --{side}-embed-dim {width}"
            )
    for part in (*PARTS.values(), *POSITIONS.values()):
        check_numbers(cfg, part.Options)
        part.check(cfg)
    _check_trees(cfg)
    for kind in list_kinds(CROSS):
        if cfg.no_cross_attention and kind.list_layers(cfg, CROSS):
            raise DataError(
                f"--no-cross-attention: {kind.title} heads attend to the source; leave the "
                "option out"
            )
    if cfg.output_bias and cfg.adaptive_softmax_cutoff is not None:
        raise DataError("--output-bias: leave --adaptive-softmax-cutoff out")
    if cfg.zero_start and cfg.adaptive_input:
        raise DataError("--zero-start: leave --adaptive-input out")
    heads = cfg.decoder.attention_heads
    check_range(cfg, "aligned_heads", 0, heads, f"each decoder layer has {heads} heads")
    read_layer(cfg, "alignment_layer", "decoder")
    if cfg.sync_layer and cfg.alignment_layer not in (0, cfg.sync_layer):
        raise DataError("--alignment-layer: a model with a sync layer aligns with it; leave it out")


def _check_trees(cfg: Any) -> None:
    """Raise ``DataError`` if no part reads ``--source-trees``, or if a part needs real trees."""
    trees, needs = cfg.source_trees, list_fields(cfg)
    if trees != "parse" and not needs.reads("heads"):
        raise DataError(
            f"--source-trees {trees}: no part of the model reads trees; leave the option out"
        )
    readers = sorted(field.name for field in needs.fields if field.needs_tree)
    if trees in NO_TREES and readers:
        others = [*(control for control in CONTROLS if control not in NO_TREES), "another"]
        raise DataError(
            f"--source-trees {trees}: these parents form no tree, and {readers[0]} is measured "
            f"in a tree; choose one of {', '.join(others)}"
        )


def list_fields(cfg: Any) -> SourceFields:
    """Return the batch fields, made from the source's parse, that the parts of a model read."""
    needs = POSITIONS[cfg.positions].list_fields(cfg)
    for part in PARTS.values():
        needs |= part.list_fields(cfg)
    return needs.of_trees(cfg.source_trees)
