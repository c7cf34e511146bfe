"""Named architectures: one per system, each in three sizes."""

from collections.abc import Callable
from typing import Any

from fairseq.models import register_model_architecture
from fairseq.models.transformer import transformer_legacy

from . import config, syntax_transformer  # noqa: F401  (the model must be registered first)

#: fairseq's architecture functions by size; each fills in the options that the user left out.
SIZES: dict[str, Callable[[Any], None]] = {
    "": transformer_legacy.base_architecture,
    "_iwslt_de_en": transformer_legacy.transformer_iwslt_de_en,
    "_tiny": transformer_legacy.tiny_architecture,
}


def plain(args: Any) -> None:
    """Set no options: this is fairseq's Transformer without syntactic heads."""


def dbsa(args: Any) -> None:
    """Set one dependency head in the bottom layer of encoder and decoder (DBSA, l_dep = 1)."""
    config.prefer(args, encoder_dependency_layer=1, decoder_dependency_layer=1)


def syncattn(args: Any) -> None:
    """Set DBSA's heads, synchronised at the penultimate decoder layer (l_sync = 5 of 6)."""
    config.prefer(args, sync_layer=config.aligning_layer(args.decoder_layers))
    dbsa(args)


def pascal(args: Any) -> None:
    """Set parent-scaled heads in the bottom encoder layer, for all of its heads but one.

    The paper tunes the number of heads per corpus, from 2 to 8 of 8; half of its systems have 7.
    """
    config.prefer(args, pascal_layers="1")


def lpsi(args: Any) -> None:
    """Set gated heads in the two bottom layers, synchronised by the two top decoder layers.

    Only gates in the same layers of both sides can be tied.
    """
    lower = range(1, min(2, args.encoder_layers, args.decoder_layers) + 1)
    config.prefer(args, distance_layers=",".join(map(str, lower)), distance_decoder_layers="same")
    if args.distance_decoder_layers in ("same", args.distance_layers):
        gated = config.count_layers(args.distance_layers, args.decoder_layers)
        upper = range(args.decoder_layers - gated + 1, args.decoder_layers + 1)
        config.prefer(args, distance_sync_layers=",".join(map(str, upper)))


def local_attention(args: Any) -> None:
    """Limit the heads of the two bottom encoder layers to two subwords on either side."""
    config.prefer(args, local_layers="1,2" if args.encoder_layers > 1 else "1")


def lisa(args: Any) -> None:
    """Set one LISA head in the bottom layer of the encoder."""
    config.prefer(args, encoder_dependency_layer=1, encoder_parser="lisa")


def sennrich_haddow(args: Any) -> None:
    """Set 10 dimensions of the source embedding for the dependency label (S&H)."""
    config.prefer(args, source_label_dim=10)


SYSTEMS: dict[str, Callable[[Any], None]] = {
    "syntax_transformer": plain,
    "transformer_dbsa": dbsa,
    "transformer_syncattn": syncattn,
    "transformer_lpsi": lpsi,
    "transformer_local_attn": local_attention,
    "transformer_pascal": pascal,
    "transformer_lisa": lisa,
    "transformer_sh": sennrich_haddow,
}


def _register(system: str, size: str) -> None:
    def architecture(args: Any) -> None:
        SIZES[size](args)
        SYSTEMS[system](args)
        config.set_defaults(args)

    register_model_architecture("syntax_transformer", system + size)(architecture)


for _system in SYSTEMS:
    for _size in SIZES:
        _register(_system, _size)
