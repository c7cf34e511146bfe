"""The Transformer encoder with syntactic heads."""

from __future__ import annotations

import itertools
from typing import Any

from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor, nn

from ..modules.layer_drop import NumberedLayerDrop, bypass_encoder_layer
from .layers import SyntaxEncoderLayer, dependencies, wrap


class SyntaxTransformerEncoder(TransformerEncoderBase):
    """fairseq's encoder, built of :class:`SyntaxEncoderLayer`."""

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding) -> None:
        self.layer_numbers = itertools.count(1)
        super().__init__(cfg, dictionary, embed_tokens)
        self.dependency_layer: int = cfg.encoder_dependency_layer
        if cfg.encoder.layerdrop > 0:
            self.layers: Any = NumberedLayerDrop(
                cfg.encoder.layerdrop,
                [self.layers[i] for i in range(self.num_layers)],
                bypass_encoder_layer,
                keep=[self.dependency_layer],
            )

    def build_encoder_layer(self, cfg: Any) -> nn.Module:
        """Build the next layer."""
        return wrap(SyntaxEncoderLayer(cfg, next(self.layer_numbers)), cfg)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        token_embeddings: Tensor | None = None,
        gold_src_parents: Tensor | None = None,
    ) -> dict[str, list[Tensor]]:
        """Encode as fairseq does.

        Args:
            src_tokens: ``(B, S)``.
            src_lengths: not used; fairseq passes it.
            return_all_hiddens: also return the input of every layer.
            token_embeddings: in place of looking ``src_tokens`` up, ``(B, S, D)``.
            gold_src_parents: ``(B, S)`` columns, -1 = none, for the dependency heads to attend to
                in place of what they predict. For analysis.
        """
        if self.dependency_layer:
            self.layers[self.dependency_layer - 1].self_attn.gold_parents = gold_src_parents
        out: dict[str, list[Tensor]] = super().forward(
            src_tokens, src_lengths, return_all_hiddens, token_embeddings
        )
        return out

    def dependencies(self, encoder_out: dict[str, list[Tensor]]) -> Tensor:
        """Return E, ``(B, h, S, S)``, from an output with all hiddens."""
        return dependencies(
            self.layers[self.dependency_layer - 1],
            encoder_out["encoder_states"][self.dependency_layer - 1],
            encoder_out["encoder_padding_mask"][0],
        )
