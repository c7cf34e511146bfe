"""The Transformer encoder with syntactic heads."""

from typing import Any

from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor, nn

from ..modules import LabelEmbedding
from .layers import SyntaxEncoderLayer, wrap
from .stack import SyntaxStack, bypass_encoder_layer


class SyntaxTransformerEncoder(SyntaxStack, TransformerEncoderBase):
    """fairseq's Transformer encoder, with syntactic heads in its layers."""

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding) -> None:
        self.prepare(cfg, "encoder")
        super().__init__(cfg, dictionary, embed_tokens)
        self.label_embedding: LabelEmbedding | None = None
        self.complete(cfg, "encoder", bypass_encoder_layer)

    def build_encoder_layer(self, cfg: Any) -> nn.Module:
        """Build the next layer of the encoder, from the bottom to the top."""
        return wrap(SyntaxEncoderLayer(cfg, self.number_layer(), self.view), cfg)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        token_embeddings: Tensor | None = None,
        **fields: Tensor | None,
    ) -> dict[str, list[Tensor]]:
        """Encode source sentences as fairseq does, with batch fields made from the parses.

        Args:
            src_tokens, src_lengths, return_all_hiddens, token_embeddings: fairseq's.
            fields: information about the parse (:mod:`..data.fields`), by name; fields that the
                model does not read are ignored. For analysis, dependency heads attend to
                ``forced_parents``, ``(B, S)`` columns, -1 = none, instead of what they predict.

        Raises:
            DataError: a field that the model reads is missing.
        """
        self.view.fill(src_tokens, src_tokens.eq(self.padding_idx), fields)
        if self.label_embedding is not None and token_embeddings is None:
            embedded = self.embed_tokens(src_tokens)
            token_embeddings = self.label_embedding.replace_last(embedded, self.view)
        out: dict[str, list[Tensor]] = super().forward(
            src_tokens, src_lengths, return_all_hiddens, token_embeddings
        )
        for name in self.decoder_fields:
            out[name] = [self.view.require(name, reader="attention to the source")]
        return out

    def reorder_encoder_out(
        self, encoder_out: dict[str, list[Tensor]], new_order: Tensor
    ) -> dict[str, list[Tensor]]:
        """Reorder the sentences in the encoder's output, as fairseq does for a beam."""
        out: dict[str, list[Tensor]] = super().reorder_encoder_out(encoder_out, new_order)
        for name in self.decoder_fields:
            out[name] = [field.index_select(0, new_order) for field in encoder_out[name]]
        return out
