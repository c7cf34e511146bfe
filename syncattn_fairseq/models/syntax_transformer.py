"""The Transformer with syntactic heads, and its named architectures."""

from __future__ import annotations

from typing import Any

from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model
from fairseq.models.transformer import TransformerModel
from torch import Tensor, nn

from ..data.fields import SourceFields
from . import config
from .checks import check
from .decoder import SyntaxTransformerDecoder
from .encoder import SyntaxTransformerEncoder


@register_model("syntax_transformer")
class SyntaxTransformerModel(TransformerModel):
    """fairseq's Transformer, in which some heads are syntactic.

    Without any such head it has the parameters of fairseq's own and computes the same.
    """

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add fairseq's options of a Transformer, and ours."""
        super().add_args(parser)
        # Architectures give the defaults, so the parser must not.
        gen_parser_from_dataclass(parser, config.SyntaxConfig(), delete_default=True)

    @classmethod
    def build_model(cls, args: Any, task: Any) -> SyntaxTransformerModel:
        """Build the model that ``args`` describe.

        Raises:
            ValueError: for impossible options, or labels without a dictionary.
        """
        args = config.namespace(args)
        config.set_defaults(args)
        model: SyntaxTransformerModel = super().build_model(args, task)
        if args.source_label_dim:
            dictionary = getattr(task, "source_label_dictionary", None)
            if dictionary is None:
                raise ValueError(
                    f"--source-label-dim {args.source_label_dim}: the data has no dictionary of "
                    "the source's dependency labels; binarise labels with syncattn-preprocess"
                )
            model.encoder.add_labels(dictionary, args.source_label_dim)
        return model

    @property
    def source_fields(self) -> SourceFields:
        """What the model wants to know about the source's parse."""
        encoder, rule = self.encoder, "first" if self.args.encoder_parser == "lisa" else "chain"
        reads_parents = encoder.pascal_layers and encoder.parent_weights.reads_parents
        return SourceFields(
            rules=frozenset([rule] if encoder.dependency_layer else []),
            scaling=frozenset([encoder.parent_weights.parents] if reads_parents else []),
            labels=encoder.label_embedding is not None,
            tree_distances=encoder.reads_trees,
        )

    @classmethod
    def build_encoder(
        cls, cfg: Any, src_dict: Any, embed_tokens: nn.Embedding
    ) -> SyntaxTransformerEncoder:
        """Build the encoder."""
        check(cfg)
        return SyntaxTransformerEncoder(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(
        cls, cfg: Any, tgt_dict: Any, embed_tokens: nn.Embedding
    ) -> SyntaxTransformerDecoder:
        """Build the decoder."""
        return SyntaxTransformerDecoder(
            cfg, tgt_dict, embed_tokens, no_encoder_attn=cfg.no_cross_attention
        )

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        return_all_hiddens: bool = True,
        features_only: bool = False,
        alignment_layer: int | None = None,
        alignment_heads: int | None = None,
        **encoder_input: Tensor,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Run encoder and decoder with teacher forcing.

        Args:
            src_tokens: ``(B, S)``.
            src_lengths: ``(B,)``.
            prev_output_tokens: ``(B, T)``.
            return_all_hiddens: ignored, all are returned: the heads are read off them.
            features_only: leave out the projection to the vocabulary.
            alignment_layer: decoder layer, from 0, whose cross-attention is returned.
            alignment_heads: average this many of its heads only.
            encoder_input: passed on to the encoder.

        Returns:
            Scores ``(B, T, V)``, and fairseq's dictionary with, where there are such heads,
            ``src_dependency``, E, ``(B, h, S, S)``; ``tgt_dependency``, D, ``(B, h, T, T)``, row t
            = the head of y_t; and, for the sync loss, ``sync_attention``, D by decoder states.
            Where distances are tied, ``src_distances`` and ``tgt_distances``, ``(B, h, S)`` and
            ``(B, h, T)`` of each gated layer, and ``distance_attn``, C of each sync layer.
        """
        encoder_out = self.encoder(
            src_tokens, src_lengths, return_all_hiddens=True, **encoder_input
        )
        scores, extra = self.decoder(
            prev_output_tokens,
            encoder_out=encoder_out,
            features_only=features_only,
            alignment_layer=alignment_layer,
            alignment_heads=alignment_heads,
            src_lengths=src_lengths,
        )
        if self.encoder.dependency_layer:
            extra["src_dependency"] = self.encoder.dependencies(encoder_out)
        if self.decoder.dependency_layer:
            by_state = self.decoder.dependencies(extra, prev_output_tokens)
            extra["tgt_dependency"] = self.decoder.by_predicted_token(by_state)
            if self.decoder.has_sync_layer:
                extra["sync_attention"] = by_state
        if "distance_attn" in extra or (self.encoder.distance_layers and not self.training):
            extra["src_distances"] = self.encoder.distances(encoder_out)
            extra["tgt_distances"] = self.decoder.distances(extra, prev_output_tokens)
        return scores, extra
