"""The options that the syntax Transformer adds to fairseq's."""

from argparse import Namespace
from dataclasses import dataclass, field, fields
from typing import Any, cast

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import OmegaConf

from ..modules.parent_weights import PARENTS
from ..modules.source_attention import TREE_POSITIONS


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
    encoder_parser: ChoiceEnum(["biaffine", "lisa", "dot"]) = field(  # type: ignore[valid-type]
        default="biaffine",
        metadata={
            "help": "the encoder's dependency heads: DBSA's bi-affine form, LISA's parser, or "
            "ordinary heads"
        },
    )
    decoder_parser: ChoiceEnum(["biaffine", "dot"]) = field(  # type: ignore[valid-type]
        default="biaffine", metadata={"help": "the decoder's dependency heads likewise"}
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
    pascal_layers: str = field(
        default="",
        metadata={"help": "encoder layers with parent-scaled heads, such as 1 or 1,2 (none)"},
    )
    pascal_heads: int = field(
        default=0,
        metadata={
            "help": "number of parent-scaled heads in each of these layers (0 = all but one)"
        },
    )
    pascal_std: float = field(
        default=1.0,
        metadata={"help": "standard deviation of the density around the parent, in subwords"},
    )
    pascal_parents: ChoiceEnum(list(PARENTS)) = field(  # type: ignore[valid-type]
        default="parse",
        metadata={
            "help": "where the density is: at the parent, or a control: at the parent of another "
            "word (shuffled), in a random tree (random), at the token itself (self), or as a "
            "constant of its peak's height (constant)"
        },
    )
    parent_ignoring: float = field(
        default=0.0,
        metadata={"help": "probability of not scaling a token's scores, in training"},
    )
    distance_layers: str = field(
        default="",
        metadata={
            "help": "layers of encoder and decoder whose heads are gated by syntactic distances, "
            "such as 1,2 (none)"
        },
    )
    distance_look_back: int = field(
        default=5, metadata={"help": "how many words before it a distance is measured from"}
    )
    gate_temperature: float = field(
        default=1.0, metadata={"help": "how steeply gates open and shut"}
    )
    distance_sync_layers: str = field(
        default="",
        metadata={
            "help": "decoder layers whose cross-attention ties the distances of both sides, one "
            "for each of the gated layers, in order (none)"
        },
    )
    local_layers: str = field(
        default="", metadata={"help": "encoder layers whose heads see a window only (none)"}
    )
    local_window: int = field(
        default=2, metadata={"help": "how many words that window has to either side"}
    )
    source_label_dim: int = field(
        default=0,
        metadata={
            "help": "dimensions of the source embedding that hold the word's dependency label "
            "(S&H has 10; 0 = none)"
        },
    )
    cross_attention_tree_window: int = field(
        default=0,
        metadata={
            "help": "how many edges of the source's dependency tree syntax-directed heads of the "
            "cross-attention see to any side of the word that they expect (SDAtt has 4; 0 = none)"
        },
    )
    cross_attention_tree_position: ChoiceEnum(list(TREE_POSITIONS)) = field(  # type: ignore[valid-type]
        default="predicted",
        metadata={
            "help": "the word that edges are counted from: predicted from the layer's state as in "
            "SDAtt, or expected: the mean over all words, weighted by the head's attention"
        },
    )
    cross_attention_tree_layer: int = field(
        default=0, metadata={"help": "decoder layer with these heads (0 = the top one)"}
    )
    cross_attention_tree_heads: int = field(
        default=0, metadata={"help": "how many there are (0 = half of the layer's heads)"}
    )
    alignment_layer: int = field(
        default=0,
        metadata={
            "help": "decoder layer that --print-alignment reads (0 = the sync layer, or else the "
            "penultimate one)"
        },
    )


def set_defaults(args: Any, config: type[FairseqDataclass] = SyntaxConfig) -> None:
    """Give ``args`` the default of every option that it lacks."""
    for option in fields(config):
        if getattr(args, option.name, None) is None and not option.name.startswith("_"):
            setattr(args, option.name, option.default)


def prefer(args: Any, **values: Any) -> None:
    """Set each option that the user has not set."""
    for name, value in values.items():
        if getattr(args, name, None) is None:
            setattr(args, name, value)


def namespace(args: Any) -> Any:
    """Return options as a namespace; hydra gives a config, and fairseq copies off a namespace."""
    if OmegaConf.is_config(args):
        return Namespace(**cast(dict[str, Any], OmegaConf.to_container(args)))
    return args


def aligning_layer(layers: int) -> int:
    """Return the decoder layer, from 1, whose cross-attention is taken for an alignment.

    It is the penultimate one (l_sync = 5 of 6 in SyncAttn; it aligns better than the last, Garg et
    al., EMNLP 2019), but not the bottom one of two: that knows no more than the token before, and
    on the built-in corpus a third of its links are wrong where the upper one errs in a tenth.
    """
    return min(layers, max(layers - 1, 2))


def layers_of(cfg: Any, option: str, *sides: str) -> list[int]:
    """Return the layers, from 1 and from the bottom, that an option such as ``1,2`` names.

    Raises:
        ValueError: it names something else, or layers that one of these sides lacks.
    """
    value = str(getattr(cfg, option))
    for side in sides:
        highest = getattr(cfg, side).layers
        if not all(n.isdigit() and 1 <= int(n) <= highest for n in value.split(",") if value):
            raise ValueError(
                f"--{option.replace('_', '-')} {value}: the {side} has layers 1 to {highest}"
            )
    return sorted({int(n) for n in value.split(",") if value})


def tree_layer(cfg: Any) -> int:
    """Return the decoder layer, from 1, with syntax-directed cross-attention; 0 = none."""
    if not cfg.cross_attention_tree_window:
        return 0
    return cfg.cross_attention_tree_layer or cfg.decoder.layers


def tree_heads(cfg: Any) -> int:
    """Return the number of its syntax-directed heads."""
    return cfg.cross_attention_tree_heads or max(1, cfg.decoder.attention_heads // 2)


def pascal_heads(cfg: Any, layer: int) -> int:
    """Return the number of parent-scaled heads of an encoder layer, counted from 1."""
    if layer not in layers_of(cfg, "pascal_layers", "encoder"):
        return 0
    heads: int = cfg.encoder.attention_heads
    taken = cfg.dependency_heads if layer == cfg.encoder_dependency_layer else 0
    wanted = cfg.pascal_heads or max(1, heads - 1 - taken)
    if not 1 <= wanted <= heads - taken:
        raise ValueError(
            f"--pascal-heads {cfg.pascal_heads}: encoder layer {layer} has {heads} heads"
            + (f", of which {taken} are dependency heads" if taken else "")
        )
    return wanted
