"""The Transformer decoder with syntactic heads."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from ..modules.layer_drop import NumberedLayerDrop, bypass_decoder_layer
from .config import aligning_layer, layers_of, tree_layer
from .layers import SyntaxDecoderLayer, attention_input, wrap


class SyntaxTransformerDecoder(TransformerDecoderBase):
    """fairseq's decoder, built of :class:`SyntaxDecoderLayer`.

    The cross-attention that it returns is that of the sync layer; without one, of
    ``cfg.alignment_layer``, or else of the penultimate (:func:`.config.aligning_layer`).
    """

    def __init__(
        self,
        cfg: Any,
        dictionary: Any,
        embed_tokens: nn.Embedding,
        no_encoder_attn: bool = False,
        output_projection: nn.Module | None = None,
    ) -> None:
        self.layer_numbers = itertools.count(1)
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, output_projection)
        self.dependency_layer: int = cfg.decoder_dependency_layer
        self.alignment_layer: int = (
            cfg.sync_layer or cfg.alignment_layer or aligning_layer(self.num_layers)
        )
        self.distance_layers = layers_of(cfg, "distance_layers", "decoder")
        self.distance_sync_layers = layers_of(cfg, "distance_sync_layers", "decoder")
        self.shown_attention: dict[int, Tensor] = {}
        for number in self.distance_sync_layers:
            self.layers[number - 1].register_forward_hook(partial(self._keep_attention, number))
        self.tree_layer = tree_layer(cfg)
        self.has_sync_layer = bool(cfg.sync_layer)
        self.shows_backward_attention = self.has_sync_layer and cfg.sync_backward == "softmax"
        self.rows_predict: bool = cfg.tgt_dependency_rows == "predicted"
        if cfg.decoder.layerdrop > 0:
            self.layers: Any = NumberedLayerDrop(
                cfg.decoder.layerdrop,
                [self.layers[i] for i in range(self.num_layers)],
                bypass_decoder_layer,
                keep=[
                    self.dependency_layer,
                    self.alignment_layer,
                    *self.distance_layers,
                    *self.distance_sync_layers,
                ],
            )

    def build_decoder_layer(self, cfg: Any, no_encoder_attn: bool = False) -> nn.Module:
        """Build the next layer."""
        return wrap(SyntaxDecoderLayer(cfg, no_encoder_attn, next(self.layer_numbers)), cfg)

    def _keep_attention(self, number: int, layer: Any, inputs: Any, output: Any) -> None:
        """Keep the cross-attention that a layer returns, of which fairseq keeps only one layer's.

        It is the layer's output, so that it has its gradient under activation checkpointing too.
        """
        if output[1] is not None:
            self.shown_attention[number] = output[1]

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]] | None,
        incremental_state: dict[str, dict[str, Tensor | None]] | None = None,
        full_context_alignment: bool = False,
        alignment_layer: int | None = None,
        alignment_heads: int | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Decode as fairseq does, but for the default of ``alignment_layer`` (from 0).

        Returns:
            Features ``(B, T, D)``, and a dictionary with ``attn``, a list of one cross-attention
            ``(B, T, S)``, averaged over heads, and ``backward_attn``, ``(B, S, T)``, where the
            model has one and is not decoding step by step. Where distances are tied,
            ``distance_attn``, one cross-attention for each of these layers. Where a source position
            is predicted, ``positions``, p, ``(B, T)``, counted from the first token.
        """
        self.shown_attention.clear()
        if alignment_layer is None:
            alignment_layer = self.alignment_layer - 1
        teacher_forced = incremental_state is None
        asked_for = alignment_layer == self.alignment_layer - 1
        both_shown = self.shows_backward_attention and teacher_forced and asked_for
        if both_shown:
            cross_attention = self.layers[self.alignment_layer - 1].encoder_attn
            cross_attention.target_padding_mask = prev_output_tokens.eq(self.padding_idx)
        if self.tree_layer and encoder_out is not None:
            [distances] = encoder_out["src_tree_distances"]
            tree_attention: Any = self.layers[self.tree_layer - 1].encoder_attn
            tree_attention.tree_distances, tree_attention.positions = distances, None
        features, extra = super().extract_features(
            prev_output_tokens,
            encoder_out,
            incremental_state,
            full_context_alignment,
            alignment_layer,
            alignment_heads,
        )
        if both_shown:
            forward, backward = extra["attn"][0].chunk(2, dim=-1)
            extra["attn"], extra["backward_attn"] = [forward], backward.transpose(1, 2)
        if self.shown_attention and teacher_forced:
            extra["distance_attn"] = [
                attention.mean(0) if attention.dim() == 4 else attention  # of each head, or of all
                for attention in map(self.shown_attention.get, self.distance_sync_layers)
                if attention is not None
            ]
        self.shown_attention.clear()
        if self.tree_layer and encoder_out is not None and tree_attention.positions is not None:
            extra["positions"] = tree_attention.positions
        return features, extra

    def dependencies(self, extra: dict[str, Any], prev_output_tokens: Tensor) -> Tensor:
        """Return D, ``(B, h, T, T)``, row and column = decoder state, after ``forward``."""
        layer: Any = self.layers[self.dependency_layer - 1]
        x = attention_input(layer, extra["inner_states"][self.dependency_layer - 1])
        padding = prev_output_tokens.eq(self.padding_idx)
        found: Tensor = layer.self_attn.dependencies(x, padding, causal=True)
        return found

    def distances(self, extra: dict[str, Any], prev_output_tokens: Tensor) -> list[Tensor]:
        """Return d of each gated layer, ``(B, h, T)``, after ``forward``."""
        found = []
        for number in self.distance_layers:
            layer: Any = self.layers[number - 1]
            x = attention_input(layer, extra["inner_states"][number - 1])
            found.append(layer.self_attn.distances(x, prev_output_tokens.eq(self.padding_idx)))
        return found

    def by_predicted_token(self, attention: Tensor) -> Tensor:
        """Number the rows and columns of D by the token that they stand for, y_0 first.

        State t predicts y_t and reads y_{t-1}. As a rule it stands for the former, and D is as it
        should be. If it stands for the latter, all moves up by one; the last row is then void.
        """
        return attention if self.rows_predict else attention.roll((-1, -1), (-2, -1))
