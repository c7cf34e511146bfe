"""The Transformer with syntactic heads."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from fairseq.checkpoint_utils import prune_state_dict
from fairseq.data import Dictionary
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model
from fairseq.models.transformer import TransformerConfig, TransformerModel
from torch import Tensor, nn

from ..base.errors import DataError
from ..data.fields import SourceFields
from ..modules import LabelEmbedding
from ..modules.heads.slots import (
    is_exposed_in_training,
    list_exposed,
    list_exposing_layers,
    list_supervised,
)
from ..modules.layer_numbers import ATTENTIONS, CROSS, remember_layers
from . import config
from .decoder import SyntaxTransformerDecoder
from .description import Description
from .encoder import SyntaxTransformerEncoder
from .plain_start import fill_in


@register_model("syntax_transformer")
class SyntaxTransformerModel(TransformerModel):
    """fairseq's Transformer with some syntactic heads.

    Without syntactic heads, it has the same parameters as fairseq's and computes the same.
    """

    def __init__(self, args: Any, encoder: Any, decoder: Any) -> None:
        super().__init__(args, encoder, decoder)
        #: The names of the tensors that heads expose in training, since losses read them.
        self.exposed = [name for name in list_exposed() if is_exposed_in_training(self.cfg, name)]

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add the options of fairseq's Transformer and of all syntactic parts to a parser.

        Raises:
            DataError: a part has an option with the name of one of fairseq's.
        """
        super().add_args(parser)
        fairseqs = {action.dest for action in parser._actions}
        for options in config.list_options():
            if taken := fairseqs & {option.name for option in fields(options)} - {"_name"}:
                raise DataError(
                    f"{options.__name__}: fairseq already has an option {min(taken)}; rename the "
                    "option of this part"
                )
            # Architectures set the defaults, so the parser must not.
            gen_parser_from_dataclass(parser, options(), delete_default=True)

    @classmethod
    def build_model(cls, args: Any, task: Any) -> SyntaxTransformerModel:
        """Build a syntax Transformer from its options; raise `DataError` if they are impossible."""
        args = config.as_namespace(args)
        config.set_defaults(args)
        config.drop_embedded_positions(args)
        remember_layers(args)
        model: SyntaxTransformerModel = super().build_model(args, task)
        if args.source_label_dim:
            dictionary = getattr(task, "source_label_dictionary", None)
            if dictionary is None and getattr(task, "continues_unparsed", False):
                dictionary = Dictionary()  # of an unknown label, the only one it will meet
            elif dictionary is None:
                raise DataError(
                    f"--source-label-dim {args.source_label_dim}: the data has no dictionary of "
                    "the source's dependency labels; binarise labels with syncattn-preprocess"
                )
            model.encoder.label_embedding = LabelEmbedding(
                dictionary, args.source_label_dim, args.encoder_embed_dim
            )
        for kind in list_supervised(model.cfg):
            require_syntax_losses(task, kind.title)
        return model

    @classmethod
    def describe(cls, args: Any) -> Description:
        """Return what a model with these options reads from batches, and what it returns to losses.

        Raises:
            DataError: the options are impossible.
        """
        config.set_defaults(args)
        remember_layers(args)
        cfg = TransformerConfig.from_namespace(args)
        config.check_model_options(cfg)
        sides = dict(zip(("src", "tgt", CROSS), ATTENTIONS, strict=True))
        exposed = {
            f"{short}_{name}": layers
            for name in list_exposed()
            for short, side in sides.items()
            if (layers := list_exposing_layers(cfg, side, name))
        }
        parses = "src_dependency" in exposed and cfg.encoder_parser != "dot"
        return Description(config.list_fields(cfg), exposed, parses, layered=True)

    def load_state_dict(
        self,
        state_dict: dict[str, Any],
        strict: bool = True,
        model_cfg: Any = None,
        args: Any = None,
    ) -> Any:
        """Load weights as fairseq does, but prune layers before missing parameters are added.

        Args:
            state_dict: the weights by name.
            strict: whether all must be there, and no others.
            model_cfg: the options of the model, which say what layers to keep.
            args: the same, of an old checkpoint.
        """
        pruned = prune_state_dict(state_dict, model_cfg)
        return super().load_state_dict(pruned, strict, model_cfg, args)

    def upgrade_state_dict_named(self, state_dict: dict[str, Any], name: str) -> None:
        """Add the syntactic parameters missing from a plain Transformer's weights, before loading.

        fairseq calls this.

        Without a dictionary of labels, only the vectors of the special symbols are loaded.
        """
        super().upgrade_state_dict_named(state_dict, name)
        labels, key = self.encoder.label_embedding, "encoder.label_embedding.weight"
        if labels is not None and labels.num_embeddings == len(Dictionary()) and key in state_dict:
            state_dict[key] = state_dict[key][: labels.num_embeddings]
        fill_in(self, state_dict)
        bias = "decoder.output_projection.bias"
        if self.cfg.output_bias and bias not in state_dict:
            state_dict[bias] = torch.zeros_like(self.decoder.output_projection.bias)

    @property
    def source_fields(self) -> SourceFields:
        """The batch fields, made from the source's parse, that the model reads."""
        return config.list_fields(self.cfg)

    @classmethod
    def build_encoder(
        cls, cfg: Any, src_dict: Any, embed_tokens: nn.Embedding
    ) -> SyntaxTransformerEncoder:
        """Build the encoder with syntactic heads, after a check of the model's options."""
        config.check_model_options(cfg)
        return SyntaxTransformerEncoder(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(
        cls, cfg: Any, tgt_dict: Any, embed_tokens: nn.Embedding
    ) -> SyntaxTransformerDecoder:
        """Build the decoder with syntactic heads."""
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
        """Return scores with teacher forcing, and the heads' tensors for losses or printed parses.

        ``return_all_hiddens`` is ignored, since nobody reads the encoder's hidden states.

        Args:
            src_tokens: the source, ``(B, S)``.
            src_lengths: the number of tokens of each source, ``(B)``.
            prev_output_tokens: the target up to each position, ``(B, T)``.
            features_only: whether to return features in place of scores.
            alignment_layer, alignment_heads: as for the decoder's ``extract_features``.

        Returns:
            Scores ``(B, T, V)``, and fairseq's dictionary with what heads expose by a NAME
            (:attr:`.Heads.exposes`): ``src_NAME``, ``tgt_NAME`` and, of cross-attention,
            ``cross_NAME``, ``(B, h, ...)`` for each layer.

            * ``src_dependency``, E, ``(B, h, S, S)``, and ``tgt_dependency``, D, ``(B, h, T, T)``,
              row t = the parent of y_t; if they are tied, ``sync_attn``, C ``(B, T, S)`` of the
              sync layer, and ``backward_attn``, ``(B, S, T)``, if this layer has one;
            * ``src_distances`` and ``tgt_distances``, ``(B, h, S)`` and ``(B, h, T)``; if they are
              tied, ``distance_attn``, C of each sync layer;
            * ``positions``, p, ``(B, T)``, counted from the first token, if source positions are
              predicted.
        """
        names = self.exposed if self.training else list_exposed()
        self.encoder.view.observed = self.decoder.view.observed = names
        try:
            encoder_out = self.encoder(src_tokens, src_lengths, **encoder_input)
            scores, extra = self.decoder(
                prev_output_tokens,
                encoder_out=encoder_out,
                features_only=features_only,
                alignment_layer=alignment_layer,
                alignment_heads=alignment_heads,
                src_lengths=src_lengths,
            )
        finally:  # decoding, which does not come here, is faster if nothing is observed
            self.encoder.view.observed = self.decoder.view.observed = ()
        for name in names:
            if self.encoder.exposing_layers[name]:
                extra[f"src_{name}"] = self.encoder.take_exposed(name)
            if self.decoder.exposing_layers[name]:
                extra[f"tgt_{name}"] = self.decoder.take_exposed(name)
            if self.decoder.cross_exposing_layers[name]:
                extra[f"cross_{name}"] = self.decoder.take_cross_exposed(name)
        for positions in extra.pop("cross_positions", ()):
            extra["positions"] = positions.squeeze(1)
        backward = extra.pop("cross_backward", ())
        if self.decoder.has_sync_layer:
            [extra["sync_attn"]] = extra["attn"]
            if alignment_layer in (None, self.decoder.alignment_layer - 1):
                for attention in backward:
                    aligned = attention[:, : alignment_heads or self.decoder.aligned_heads]
                    extra["backward_attn"] = aligned.mean(1).transpose(1, 2)
        return scores, extra


def require_syntax_losses(task: Any, heads: str) -> None:
    """Make a task raise `DataError` for a criterion that does not train the model's heads.

    Training and validation build a criterion after the model, from the same task. This may be
    fairseq's own task, so we have no other place to check.
    """
    build = getattr(task, "build_criterion", None)

    def build_criterion(cfg: Any, *args: Any, **kwargs: Any) -> Any:
        criterion = build(cfg, *args, **kwargs) if build else None
        if not hasattr(criterion, "terms"):
            raise DataError(
                f"the model has {heads} heads, which this criterion does not train: add "
                "--criterion label_smoothed_cross_entropy_with_syntax and --task "
                "translation_with_syntax (weights of 0 leave the heads untrained)"
            )
        return criterion

    task.build_criterion = build_criterion
