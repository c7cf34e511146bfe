"""The options of the recurrent model."""

from dataclasses import dataclass
from typing import Any

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from ..base.errors import DataError
from ..base.option_fields import check_numbers, option
from ..modules.source_attention import TREE_POSITIONS

ATTENTIONS = ("global", "local", "flexible", "syntax-directed")


@dataclass
class SyntaxRNNConfig(FairseqDataclass):
    """Recurrent models: sizes, by default those of the paper, and the attention."""

    dropout: float = option(0.1, "dropout of embeddings and before the output layer")
    encoder_embed_dim: int = option(620, "size of source embeddings")
    encoder_hidden_size: int = option(1000, "size of the encoder's state in each direction")
    decoder_embed_dim: int = option(620, "size of target embeddings")
    decoder_hidden_size: int = option(1000, "size of the decoder's state")
    share_decoder_input_output_embed: bool = option(
        False, "share the target embeddings with the output layer"
    )
    share_all_embeddings: bool = option(
        False, "share the embeddings of source, target and output layer"
    )
    source_attention: ChoiceEnum(list(ATTENTIONS)) = option(  # type: ignore[valid-type]
        "global", "how the decoder attends to the source"
    )
    double_context: bool = option(False, "add the context of this attention to a global one")
    half_window: int = option(
        10, "local and flexible attention: tokens on either side (D)", at_least=1
    )
    renormalise_local: bool = option(
        False, "make the weights of local attention sum to one, unlike in the paper"
    )
    tree_window: int = option(
        4, "syntax-directed attention: edges in any direction (n)", at_least=1
    )
    tree_position: ChoiceEnum(list(TREE_POSITIONS)) = option(  # type: ignore[valid-type]
        "predicted",
        "syntax-directed attention: count edges from the word predicted from the "
        "decoder's state, as in the paper; or expected: average over all words, weighted by "
        "the global attention",
    )


def check(args: Any, task: Any) -> None:
    """Raise ``DataError`` if options do not go together."""
    if args.double_context and args.source_attention == "global":
        raise DataError(
            "--double-context adds to global attention; choose another --source-attention"
        )
    if args.share_all_embeddings:
        if task.source_dictionary != task.target_dictionary:
            raise DataError("--share-all-embeddings needs a joint dictionary")
        if args.encoder_embed_dim != args.decoder_embed_dim:
            raise DataError(
                f"--share-all-embeddings: --encoder-embed-dim {args.encoder_embed_dim} differs "
                f"from --decoder-embed-dim {args.decoder_embed_dim}"
            )
    check_numbers(args, SyntaxRNNConfig)
