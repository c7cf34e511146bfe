"""The options that the syntax Transformer adds to fairseq's."""

from argparse import Namespace
from dataclasses import dataclass, field, fields
from typing import Any, cast

from fairseq.dataclass import FairseqDataclass
from omegaconf import OmegaConf

from ..base.errors import DataError
from ..data.fields import NOTHING, SourceFields
from ..modules.heads.placement import check_placement
from ..modules.options import read_layer
from ..modules.registry import PARTS


@dataclass
class AlignmentOptions(FairseqDataclass):
    """Alignment: what is taken for it."""

    alignment_layer: int = field(
        default=0,
        metadata={
            "help": "decoder layer that --print-alignment reads (0 = the sync layer, or else the "
            "penultimate one)"
        },
    )


def list_options() -> list[type[FairseqDataclass]]:
    """List the options of all syntactic parts that are registered, and the model's own."""
    return [*(part.Options for part in PARTS.values()), AlignmentOptions]


def set_defaults(args: Any, *options: type[FairseqDataclass]) -> None:
    """Give ``args`` the default of every option that it lacks.

    Args:
        args: a namespace or a configuration.
        options: whose; by default the syntax Transformer's.
    """
    for config in options or list_options():
        for option in fields(config):
            if getattr(args, option.name, None) is None and not option.name.startswith("_"):
                setattr(args, option.name, option.default)


def prefer(args: Any, **values: Any) -> None:
    """Set each option that the user has not set."""
    for name, value in values.items():
        if getattr(args, name, None) is None:
            setattr(args, name, value)


def as_namespace(args: Any) -> Any:
    """Return options as a namespace; hydra gives a config, and fairseq copies off a namespace."""
    if OmegaConf.is_config(args):
        return Namespace(**cast(dict[str, Any], OmegaConf.to_container(args)))
    return args


def aligning_layer(layers: int) -> int:
    """Return the decoder layer, from 1, whose cross-attention is taken for an alignment.

    It is the penultimate one (l_sync = 5 of 6 in SyncAttn; it aligns better than the last, Garg et
    al., EMNLP 2019), but not the bottom one of two: that sees no more than the token before, and
    on the built-in corpus a third of its links are wrong where the upper one errs in a tenth.
    """
    return min(layers, max(layers - 1, 2))


def check_options(cfg: Any) -> None:
    """Raise ``ValueError`` for what the model does not have, such as a layer too high."""
    check_placement(cfg)
    for part in PARTS.values():
        part.check(cfg)
    read_layer(cfg, "alignment_layer", "decoder")
    if cfg.sync_layer and cfg.alignment_layer not in (0, cfg.sync_layer):
        raise DataError("--alignment-layer is the sync layer where there is one: leave it out")


def list_fields(cfg: Any) -> SourceFields:
    """Return what all parts together ask of the data about the source's parse."""
    wanted = NOTHING
    for part in PARTS.values():
        wanted |= part.list_fields(cfg)
    return wanted
