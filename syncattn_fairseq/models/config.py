"""The options that the syntax Transformer adds to fairseq's."""

from dataclasses import dataclass, field, fields
from typing import Any

from fairseq.dataclass import ChoiceEnum, FairseqDataclass


@dataclass
class SyntaxConfig(FairseqDataclass):
    """Where the syntactic heads are. Layers and heads are counted from 1; 0 = nowhere."""

    encoder_dependency_layer: int = field(
        default=0, metadata={"help": "encoder layer with dependency heads (1 = bottom, 0 = none)"}
    )
    decoder_dependency_layer: int = field(
        default=0, metadata={"help": "decoder layer with dependency heads (1 = bottom, 0 = none)"}
    )
    dependency_heads: int = field(
        default=1, metadata={"help": "number of dependency heads in each of these layers"}
    )
    dependency_key_bias: bool = field(
        default=False, metadata={"help": "add a bias for each key to the bi-affine scores"}
    )
    tgt_dependency_rows: ChoiceEnum(["predicted", "input"]) = field(  # type: ignore[valid-type]
        default="predicted",
        metadata={
            "help": "the token whose head a decoder state looks for: the one that it predicts, or "
            "the one that it reads"
        },
    )
    sync_layer: int = field(
        default=0,
        metadata={"help": "decoder layer whose cross-attention ties both sides (0 = no sync loss)"},
    )
    sync_backward: ChoiceEnum(["transpose", "softmax"]) = field(  # type: ignore[valid-type]
        default="transpose",
        metadata={
            "help": "from source to target: the transposed cross-attention (SyncAttn Eq. 7) or a "
            "softmax over the target positions (NLP 2021, Eq. 11)"
        },
    )
    alignment_layer: int = field(
        default=0,
        metadata={
            "help": "decoder layer that --print-alignment reads (0 = the sync layer, or else the "
            "penultimate one)"
        },
    )


def set_defaults(args: Any) -> None:
    """Give ``args`` every option of :class:`SyntaxConfig` that it lacks."""
    for option in fields(SyntaxConfig):
        if getattr(args, option.name, None) is None and not option.name.startswith("_"):
            setattr(args, option.name, option.default)


def aligning_layer(layers: int) -> int:
    """Return the decoder layer, from 1, whose cross-attention is taken for an alignment.

    It is the penultimate one (l_sync = 5 of 6 in SyncAttn; it aligns better than the last, Garg et
    al., EMNLP 2019), but not the bottom one of two: that knows no more than the token before, and
    on the built-in corpus a third of its links are wrong where the upper one errs in a tenth.
    """
    return min(layers, max(layers - 1, 2))


def check(cfg: Any) -> None:
    """Raise ``ValueError`` for a layer or a number of heads that the model does not have."""
    for side in ("encoder", "decoder"):
        number, layers = getattr(cfg, f"{side}_dependency_layer"), getattr(cfg, side).layers
        if not 0 <= number <= layers:
            raise ValueError(
                f"--{side}-dependency-layer {number}: the {side} has layers 1 to {layers}"
            )
        heads = getattr(cfg, side).attention_heads
        if number and not 1 <= cfg.dependency_heads <= heads:
            raise ValueError(
                f"--dependency-heads {cfg.dependency_heads}: the {side} has {heads} heads a layer"
            )
    for option in ("sync_layer", "alignment_layer"):
        if not 0 <= getattr(cfg, option) <= cfg.decoder.layers:
            raise ValueError(
                f"--{option.replace('_', '-')} {getattr(cfg, option)}: "
                f"the decoder has layers 1 to {cfg.decoder.layers}"
            )
    if cfg.sync_layer and not (cfg.encoder_dependency_layer and cfg.decoder_dependency_layer):
        raise ValueError(
            "--sync-layer ties the dependency heads of encoder and decoder: "
            "set --encoder-dependency-layer and --decoder-dependency-layer too"
        )
    if cfg.sync_layer and cfg.alignment_layer not in (0, cfg.sync_layer):
        raise ValueError("--alignment-layer is the sync layer where there is one: leave it out")
