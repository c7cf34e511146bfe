"""The recurrent model with attention limited by position or by syntax, and its architectures."""

from dataclasses import dataclass
from typing import Any, Self

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import FairseqEncoderDecoderModel, register_model, register_model_architecture
from fairseq.models.lstm import Embedding
from torch import Tensor

from ..base.errors import DataError
from ..base.option_fields import check_numbers, option
from ..data.fields import NOTHING, TREE_DISTANCES, SourceFields
from ..modules import (
    FlexibleAttention,
    GlobalAttention,
    LocalAttention,
    SourceAttention,
    SyntaxDirectedAttention,
)
from ..modules.source_attention import TREE_POSITIONS
from .config import as_namespace, prefer, set_defaults
from .description import Description
from .rnn_decoder import ConditionalGRUDecoder
from .rnn_encoder import BidirectionalGRUEncoder

ATTENTIONS = ("global", "local", "flexible", "syntax-directed")


@dataclass
class SyntaxRNNConfig(FairseqDataclass):
    """Recurrent models: layer sizes, by default the paper's, and attention to the source."""

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
    double_context: bool = option(
        False, "add the context of this attention to the context of a global attention"
    )
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
    """Raise ``DataError`` if options contradict each other or do not fit the dictionaries."""
    if args.double_context and args.source_attention == "global":
        raise DataError(
            "--double-context adds an attention to the global one; choose another "
            "--source-attention"
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


@register_model("syntax_rnn")
class SyntaxRNNModel(FairseqEncoderDecoderModel):
    """Recurrent encoder-decoder (SDAtt) of a bidirectional GRU and a conditional GRU."""

    #: Whether the encoder reads ``lengths_on_cpu``, which spare a GPU a wait in each update.
    takes_lengths_on_cpu = True

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add the options of recurrent models to a command line parser."""
        # Architectures set the defaults, so the parser must not.
        gen_parser_from_dataclass(parser, SyntaxRNNConfig(), delete_default=True)

    @classmethod
    def build_model(cls, args: Any, task: Any) -> Self:
        """Build a recurrent model from its options; raise `DataError` if they are impossible."""
        args = as_namespace(args)
        set_defaults(args, SyntaxRNNConfig)
        check(args, task)
        source, target = task.source_dictionary, task.target_dictionary
        src_embeddings = Embedding(len(source), args.encoder_embed_dim, source.pad())
        tgt_embeddings = src_embeddings
        if not args.share_all_embeddings:
            tgt_embeddings = Embedding(len(target), args.decoder_embed_dim, target.pad())
        first: SourceAttention = make_attention(args)
        second = None
        if args.double_context:
            first, second = GlobalAttention(), first
        return cls(
            BidirectionalGRUEncoder(
                source,
                src_embeddings,
                args.encoder_hidden_size,
                args.dropout,
                reads_trees=args.source_attention == "syntax-directed",
            ),
            ConditionalGRUDecoder(
                target,
                tgt_embeddings,
                2 * args.encoder_hidden_size,
                args.decoder_hidden_size,
                first,
                second,
                args.dropout,
                args.share_all_embeddings or args.share_decoder_input_output_embed,
            ),
        )

    @classmethod
    def describe(cls, args: Any) -> Description:
        """Return the batch fields read by a recurrent model with these options."""
        return Description(_list_fields(args.source_attention == "syntax-directed"))

    @property
    def source_fields(self) -> SourceFields:
        """The batch fields, made from the source's parse, that the model reads."""
        return _list_fields(self.encoder.reads_trees)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        features_only: bool = False,
        **encoder_input: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return the scores of target tokens with teacher forcing, and the attention.

        Args:
            src_tokens: the source, ``(B, S)``.
            src_lengths: the number of tokens of each source, ``(B)``.
            prev_output_tokens: the target up to each position, ``(B, T)``.
            features_only: whether to return features in place of scores.

        Returns:
            Scores ``(B, T, V)``, and a dictionary with ``attn`` and ``positions``; see
            :meth:`.ConditionalGRUDecoder.forward`.
        """
        encoder_out = self.encoder(src_tokens, src_lengths, **encoder_input)
        scores, extra = self.decoder(
            prev_output_tokens, encoder_out=encoder_out, features_only=features_only
        )
        return scores, extra


def _list_fields(reads_trees: bool) -> SourceFields:
    return SourceFields(fields=frozenset([TREE_DISTANCES])) if reads_trees else NOTHING


def make_attention(args: Any) -> SourceAttention:
    """Build the attention to the source chosen by ``--source-attention``."""
    state_dim = args.decoder_hidden_size
    if args.source_attention == "local":
        return LocalAttention(state_dim, args.half_window, args.renormalise_local)
    if args.source_attention == "flexible":
        return FlexibleAttention(state_dim, args.half_window)
    if args.source_attention == "syntax-directed":
        return SyntaxDirectedAttention(state_dim, args.tree_window, args.tree_position)
    return GlobalAttention()


def _register(attention: str, double: bool) -> None:
    def architecture(args: Any) -> None:
        prefer(args, source_attention=attention, double_context=double)
        set_defaults(args, SyntaxRNNConfig)

    name = f"rnn_{attention.replace('-', '_')}{'_double' if double else ''}"
    register_model_architecture("syntax_rnn", name)(architecture)


for _attention in ATTENTIONS:
    _register(_attention, double=False)
    if _attention != "global":
        _register(_attention, double=True)
register_model_architecture("syntax_rnn", "syntax_rnn")(
    lambda args: set_defaults(args, SyntaxRNNConfig)
)
