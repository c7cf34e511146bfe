"""The Transformer decoder with syntactic heads."""

from functools import partial
from typing import Any

from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from ..base.errors import DataError
from ..modules.layer_numbers import read_layer, read_layers
from .config import aligning_layer
from .ends import ZeroStart, add_output_bias
from .layers import SyntaxDecoderLayer, wrap
from .stack import SyntaxStack, bypass_decoder_layer


class SyntaxTransformerDecoder(SyntaxStack, TransformerDecoderBase):
    """fairseq's Transformer decoder, with syntactic heads in its layers.

    It returns the cross-attention of the sync layer; without one, of ``cfg.alignment_layer``, or
    by default of the penultimate layer (:func:`.config.aligning_layer`).
    """

    def __init__(
        self,
        cfg: Any,
        dictionary: Any,
        embed_tokens: nn.Embedding,
        no_encoder_attn: bool = False,
        output_projection: nn.Module | None = None,
    ) -> None:
        self.prepare(cfg, "decoder")
        if cfg.zero_start:
            embed_tokens = ZeroStart(embed_tokens, dictionary.eos())
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, output_projection)
        sync_layer = read_layer(cfg, "sync_layer", "decoder")
        chosen = sync_layer or read_layer(cfg, "alignment_layer", "decoder")
        #: The place of the aligning layer in the decoder, from 1, by which fairseq finds it.
        self.alignment_layer: int = (
            self.numbers.index(chosen) + 1 if chosen else aligning_layer(self.num_layers)
        )
        self.aligned_heads: int | None = cfg.aligned_heads or None
        self.distance_sync_layers = read_layers(cfg, "distance_sync_layers", "decoder")
        self.tied_attention: dict[int, Tensor] = {}
        for number in self.distance_sync_layers:
            hook = partial(self._note_attention, number)
            self.find_layer(number).register_forward_hook(hook)
        self.has_sync_layer = bool(sync_layer)
        aligning = self.numbers[self.alignment_layer - 1]
        required = [aligning, *self.distance_sync_layers]
        self.complete(cfg, "decoder", bypass_decoder_layer, required)

    def build_output_projection(
        self, cfg: Any, dictionary: Any, embed_tokens: nn.Embedding
    ) -> None:
        """Build the projection to the target's vocabulary; ``--output-bias`` adds a bias."""
        super().build_output_projection(cfg, dictionary, embed_tokens)
        if cfg.output_bias:
            add_output_bias(self.output_projection)

    def build_decoder_layer(self, cfg: Any, no_encoder_attn: bool = False) -> nn.Module:
        """Build the next layer of the decoder, from the bottom to the top."""
        layer = SyntaxDecoderLayer(cfg, no_encoder_attn, self.number_layer(), self.view)
        return wrap(layer, cfg)

    def _note_attention(self, number: int, layer: Any, inputs: Any, output: Any) -> None:
        """Store a layer's cross-attention, since fairseq returns a single layer's only.

        As an output of the layer, it has a gradient even with activation checkpointing.
        """
        if output[1] is not None:
            self.tied_attention[number] = output[1]

    def choose_head(self, head: int | None) -> None:
        """Make the decoder return cross-attention of one head, counted from 1, not the mean.

        None returns the mean again.

        For analysis only: losses need the mean. `DataError`: there are fewer heads.
        """
        for layer in self.layers:
            heads = layer.encoder_attn.num_heads
            if head is not None and not 1 <= head <= heads:
                raise DataError(f"head {head}: a decoder layer has the heads 1 to {heads}")
            layer.chosen_head = head

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]] | None,
        incremental_state: dict[str, dict[str, Tensor | None]] | None = None,
        full_context_alignment: bool = False,
        alignment_layer: int | None = None,
        alignment_heads: int | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return the decoder's features and the cross-attention of one layer, which aligns words.

        This differs from fairseq in the default of ``alignment_layer``.

        Args:
            prev_output_tokens: the target up to each position, ``(B, T)``.
            encoder_out: the encoder's output.
            incremental_state: the cache of step-by-step decoding; None for teacher forcing.
            full_context_alignment: whether positions see the whole target.
            alignment_layer: the decoder layer of the returned cross-attention, from 0.
            alignment_heads: the number of averaged heads; None for the default.

        Returns:
            Features ``(B, T, D)``, and a dictionary with ``attn``, a list of one cross-attention
            ``(B, T, S)``, averaged over ``cfg.aligned_heads``. If distances are tied,
            ``distance_attn``, one cross-attention for each of these layers; that of the aligning
            layer is the very tensor of ``attn``.
        """
        self.tied_attention.clear()
        if alignment_layer is None:
            alignment_layer = self.alignment_layer - 1
        teacher_forced = incremental_state is None
        own_layer = alignment_layer == self.alignment_layer - 1
        fields = {name: encoder_out[name][0] for name in self.decoder_fields} if encoder_out else {}
        self.view.fill(prev_output_tokens, prev_output_tokens.eq(self.padding_idx), fields)
        features, extra = super().extract_features(
            prev_output_tokens,
            encoder_out,
            incremental_state,
            full_context_alignment,
            alignment_layer,
            alignment_heads or self.aligned_heads,
        )
        if self.tied_attention and teacher_forced:
            tied = {
                number: attention[: self.aligned_heads].mean(0)
                for number, attention in self.tied_attention.items()
            }
            if own_layer and alignment_heads in (None, self.aligned_heads):
                tied |= dict.fromkeys(tied.keys() & {self.alignment_layer}, extra["attn"][0])
            extra["distance_attn"] = [tied[n] for n in self.distance_sync_layers if n in tied]
        self.tied_attention.clear()
        return features, extra
