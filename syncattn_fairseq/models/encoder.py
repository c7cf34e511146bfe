"""The Transformer encoder with syntactic heads."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor, nn

from ..modules import NumberedLayerDrop, ParentWeights
from ..modules.layer_drop import bypass_encoder_layer
from .config import layers_of
from .layers import SyntaxEncoderLayer, attention_input, wrap


class SyntaxTransformerEncoder(TransformerEncoderBase):
    """fairseq's encoder, built of :class:`SyntaxEncoderLayer`."""

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding) -> None:
        self.layer_numbers = itertools.count(1)
        super().__init__(cfg, dictionary, embed_tokens)
        self.label_embedding: nn.Embedding | None = None
        self.dependency_layer: int = cfg.encoder_dependency_layer
        self.distance_layers = layers_of(cfg, "distance_layers", "encoder")
        self.reads_trees = cfg.cross_attention_tree_window > 0
        self.pascal_layers = layers_of(cfg, "pascal_layers", "encoder")
        self.parent_weights = ParentWeights(cfg.pascal_parents, cfg.pascal_std, cfg.parent_ignoring)
        if cfg.encoder.layerdrop > 0:
            self.layers: Any = NumberedLayerDrop(
                cfg.encoder.layerdrop,
                [self.layers[i] for i in range(self.num_layers)],
                bypass_encoder_layer,
                keep=[self.dependency_layer, *self.distance_layers],
            )

    def add_labels(self, dictionary: Any, dim: int) -> None:
        """Let dependency labels take the last dimensions of the embedding.

        That is Sennrich and Haddow's (WMT 2016) concatenation. Where the table of the tokens is
        shared with the target, its last columns then serve the target alone.

        Args:
            dictionary: of the labels.
            dim: how many dimensions they take.
        """
        width = self.embed_tokens.embedding_dim
        self.label_embedding = nn.Embedding(len(dictionary), dim, padding_idx=dictionary.pad())
        nn.init.normal_(self.label_embedding.weight, std=width**-0.5)  # as fairseq's tokens
        nn.init.zeros_(self.label_embedding.weight[dictionary.pad()])

    def build_encoder_layer(self, cfg: Any) -> nn.Module:
        """Build the next layer."""
        return wrap(SyntaxEncoderLayer(cfg, next(self.layer_numbers)), cfg)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        token_embeddings: Tensor | None = None,
        src_parents: Tensor | None = None,
        src_labels: Tensor | None = None,
        src_tree_distances: Tensor | None = None,
        gold_src_parents: Tensor | None = None,
    ) -> dict[str, list[Tensor]]:
        """Encode as fairseq does; what a model of this kind does not read is ignored.

        Args:
            src_tokens: ``(B, S)``.
            src_lengths: not used; fairseq passes it.
            return_all_hiddens: also return the input of every layer.
            token_embeddings: in place of looking ``src_tokens`` up, ``(B, S, D)``.
            src_parents: ``(B, S)`` columns in floating point, NaN = none, for the parent-scaled
                heads.
            src_labels: ``(B, S)`` indices of dependency labels.
            src_tree_distances: ``(B, S, S)`` edges between the words of each two tokens, for the
                syntax-directed heads of the decoder; handed on under the same name.
            gold_src_parents: ``(B, S)`` columns, -1 = none, for the dependency heads to attend to
                in place of what they predict. For analysis.

        Raises:
            ValueError: the model reads parents, labels or distances, and there are none.
        """
        if self.dependency_layer:
            self.layers[self.dependency_layer - 1].self_attn.gold_parents = gold_src_parents
        if self.pascal_layers:
            weights = self.parent_weights(src_tokens, src_parents)
            for number in self.pascal_layers:
                self.layers[number - 1].self_attn.parent_weights = weights
        if self.label_embedding is not None and token_embeddings is None:
            token_embeddings = self._embed_with_labels(src_tokens, src_labels, self.label_embedding)
        out: dict[str, list[Tensor]] = super().forward(
            src_tokens, src_lengths, return_all_hiddens, token_embeddings
        )
        if self.reads_trees:
            out["src_tree_distances"] = [required_distances(src_tree_distances)]
        return out

    def reorder_encoder_out(
        self, encoder_out: dict[str, list[Tensor]], new_order: Tensor
    ) -> dict[str, list[Tensor]]:
        """Put the sentences in another order, as fairseq does."""
        out: dict[str, list[Tensor]] = super().reorder_encoder_out(encoder_out, new_order)
        for distances in encoder_out.get("src_tree_distances", []):
            out["src_tree_distances"] = [distances.index_select(0, new_order)]
        return out

    def _embed_with_labels(
        self, src_tokens: Tensor, src_labels: Tensor | None, label_embedding: nn.Embedding
    ) -> Tensor:
        if src_labels is None:
            raise ValueError(
                "the model's source embedding needs net_input.src_labels, the dependency labels; "
                "--task translation_with_syntax supplies them"
            )
        tokens = self.embed_tokens(src_tokens)[..., : -label_embedding.embedding_dim]
        return torch.cat([tokens, label_embedding(src_labels)], dim=-1)

    def dependencies(self, encoder_out: dict[str, list[Tensor]]) -> Tensor:
        """Return E, ``(B, h, S, S)``, from an output with all hiddens."""
        layer: Any = self.layers[self.dependency_layer - 1]
        x = attention_input(layer, encoder_out["encoder_states"][self.dependency_layer - 1])
        found: Tensor = layer.self_attn.dependencies(x, encoder_out["encoder_padding_mask"][0])
        return found

    def distances(self, encoder_out: dict[str, list[Tensor]]) -> list[Tensor]:
        """Return e of each gated layer, ``(B, h, S)``, from an output with all hiddens."""
        found = []
        for number in self.distance_layers:
            layer: Any = self.layers[number - 1]
            x = attention_input(layer, encoder_out["encoder_states"][number - 1])
            found.append(layer.self_attn.distances(x, encoder_out["encoder_padding_mask"][0]))
        return found


def required_distances(src_tree_distances: Tensor | None) -> Tensor:
    """Return the distances that a model reads.

    Raises:
        ValueError: there are none.
    """
    if src_tree_distances is None:
        raise ValueError(
            "the model's attention to the source needs net_input.src_tree_distances; "
            "--task translation_with_syntax supplies them"
        )
    return src_tree_distances
