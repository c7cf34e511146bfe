"""The recurrent decoder, with a choice of attention to the source."""

from typing import Any, NamedTuple

import torch
from fairseq.models import FairseqIncrementalDecoder
from fairseq.models.lstm import Linear
from fairseq.modules import FairseqDropout
from torch import Tensor, nn
from torch.nn import functional as F

from ..functional import additive_scores
from ..modules import Source, SourceAttention, StepwiseLinear, gru_step
from .rnn_encoder import MAX_POSITIONS, is_within_beams


class Memory(NamedTuple):
    """Tensors handed from a decoding step to the next: decoder state and precomputed projections.

    Attributes:
        state: s, the decoder's state, ``(B, H)``.
        keys, values: the annotations multiplied by W and by GRU_2's weights, ``(B, S, ...)``.
        source: padding and tree distances of the source sentences.
        weight, bias: of all linear layers that read s', joined.
    """

    state: Tensor
    keys: Tensor
    values: Tensor
    source: Source
    weight: Tensor
    bias: Tensor


class ConditionalGRUDecoder(FairseqIncrementalDecoder):
    """Recurrent decoder of two GRU cells, with attention to the source between them.

    .. math::
        s'_i = GRU_1(s_{i−1}, y_{i−1})
        c_i = Σ_j a_{ij} h_j
        s_i = GRU_2(s'_i, c_i)
        P(y_i) = softmax(L_o tanh(L_w y_{i−1} + L_d s_i + L_c c_i))

    (SDAtt Eq. 1-4, and 8 for syntax-directed attention). With double context, c comes from the
    global attention, which drives the state, and `L_s c^s_i` is added for the other attention,
    computed from the same scores (Eq. 13-14). The first state comes from the last state of the
    backward encoder, as in Bahdanau et al. (2015).

    Everything that does not depend on the previous state is computed for all steps at once: the
    products of words and of annotations with weights, the second context and the output.

    Args:
        dictionary, embed_tokens: of the target.
        annotation_dim, hidden_size: of the encoder's annotations, and of the state.
        attention: turns scores into the weights of the context that drives the state.
        second_attention: turns them into the weights of the second context; None for one context.
        dropout: of embeddings, and before the output layer.
        share_embeddings: the output layer's weights are the embeddings.
    """

    num_layers = 1
    #: Number of consecutive rows that are hypotheses of one sentence; 1 if that is not known.
    beam_size = 1

    def __init__(
        self,
        dictionary: Any,
        embed_tokens: nn.Embedding,
        annotation_dim: int,
        hidden_size: int,
        attention: SourceAttention,
        second_attention: SourceAttention | None,
        dropout: float,
        share_embeddings: bool,
    ) -> None:
        super().__init__(dictionary)
        embed_dim = embed_tokens.embedding_dim
        self.embed_tokens = embed_tokens
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)
        self.start = Linear(annotation_dim // 2, hidden_size)
        self.read = nn.GRUCell(embed_dim, hidden_size)
        self.move = nn.GRUCell(annotation_dim, hidden_size)
        self.query = Linear(hidden_size, hidden_size)
        self.key = Linear(annotation_dim, hidden_size, bias=False)
        self.energy = nn.Parameter(torch.empty(hidden_size).uniform_(-0.1, 0.1))
        self.attention = attention
        self.second_attention = second_attention
        self.from_word = Linear(embed_dim, embed_dim)
        self.from_state = Linear(hidden_size, embed_dim, bias=False)
        self.from_context = Linear(annotation_dim, embed_dim, bias=False)
        self.from_second_context = None
        if second_attention is not None:
            self.from_second_context = Linear(annotation_dim, embed_dim, bias=False)
        self.output_projection = Linear(embed_dim, len(dictionary), bias=False)
        if share_embeddings:
            self.output_projection.weight = embed_tokens.weight

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]],
        incremental_state: Any = None,
        features_only: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return scores for the token after each target token; in a decoding step, after the last.

        Args:
            prev_output_tokens: the target up to each position, ``(B, T)``.
            encoder_out: the encoder's output.
            incremental_state: the cache of step-by-step decoding; None for teacher forcing.
            features_only: whether to return features ``(B, T, D)`` in place of scores.

        Returns:
            Scores ``(B, T, V)``, and a dictionary with ``attn``, a list of one attention
            ``(B, T, S)``, the one that drives the state. If source positions are predicted,
            ``positions``, p, ``(B, T)``, counted from the first token, without gradient.
        """
        features, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        return (features if features_only else self.output_layer(features)), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]],
        incremental_state: Any = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return the features before the output projection, ``(B, T, D)``, and the attention."""
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
        [annotations] = encoder_out["annotations"]
        memory = self._memory(encoder_out, incremental_state)
        state, keys, values, source = memory[:4]
        words = self.dropout(self.embed_tokens(prev_output_tokens))
        read = F.linear(words, self.read.weight_ih, self.read.bias_ih)

        read_state = StepwiseLinear(self.read.weight_hh, self.read.bias_hh)
        read_intermediate = StepwiseLinear(memory.weight, memory.bias)
        sizes = [layer.weight.size(0) for layer in self._readers]
        mask = source.mask.to(torch.promote_types(keys.dtype, torch.float32))
        move_bias = self.move.bias_ih.to(values.dtype).expand(values.size(0), -1)
        intermediates, all_scores, all_weights, positions, states = [], [], [], [], []
        for inputs in read.unbind(1):
            intermediate = gru_step(inputs, read_state(state), state)
            recurrent, *products = read_intermediate(intermediate).split(
                [values.size(-1), *sizes], dim=-1
            )
            query, *products = (product.unsqueeze(1) for product in products)
            scores = additive_scores(query, keys, self.energy) + mask
            weights, position = self.attention.weigh(scores, products, source)
            weights = weights.to(values.dtype)
            inputs = (weights @ values).squeeze(1) + move_bias
            state = gru_step(inputs, recurrent, intermediate)
            intermediates.append(intermediate)
            all_scores.append(scores)
            all_weights.append(weights)
            positions.append(position)
            states.append(state)
        if incremental_state is not None:
            self._remember(incremental_state, memory._replace(state=state))

        attention = torch.cat(all_weights, dim=1)
        output = (
            self.from_word(words)
            + self.from_state(torch.stack(states, dim=1))
            + self.from_context(attention @ annotations)
        )
        if self.second_attention is not None and self.from_second_context is not None:
            second, *positions = self.second_attention(
                torch.cat(all_scores, dim=1), torch.stack(intermediates, dim=1), source
            )
            output = output + self.from_second_context(second.to(values.dtype) @ annotations)
        extra: dict[str, Any] = {"attn": [attention]}
        predicted = [position for position in positions if position is not None]
        if predicted:
            extra["positions"] = torch.cat(predicted, dim=1).detach()
        return self.dropout(torch.tanh(output)), extra

    @property
    def _readers(self) -> list[nn.Linear]:
        """The linear layers with the intermediate state s' as input, besides GRU_2.

        All of their products are computed at once.
        """
        return [self.query, *self.attention.readers]

    def _memory(self, encoder_out: dict[str, list[Tensor]], incremental_state: Any) -> Memory:
        if incremental_state:
            return self.get_incremental_state(incremental_state, "memory")
        [annotations], [summary] = encoder_out["annotations"], encoder_out["summary"]
        return Memory(
            torch.tanh(self.start(summary)),
            self.key(annotations),
            F.linear(annotations, self.move.weight_ih),
            Source(encoder_out["padding_mask"][0], *encoder_out["tree_distances"]),
            torch.cat([self.move.weight_hh, *(layer.weight for layer in self._readers)]),
            torch.cat([self.move.bias_hh, *map(get_bias, self._readers)]),
        )

    def _remember(self, incremental_state: Any, memory: Memory) -> None:
        self.set_incremental_state(incremental_state, "memory", memory)

    def output_layer(self, features: Tensor) -> Tensor:
        """Project features to scores of the target's vocabulary."""
        return self.output_projection(features)

    def reorder_incremental_state(self, incremental_state: Any, new_order: Tensor) -> None:
        """Reorder the cached state as the beam's hypotheses were reordered."""
        memory = self.get_incremental_state(incremental_state, "memory")
        if memory is None:
            return
        if not is_within_beams(self, memory.keys, new_order):
            memory = memory._replace(
                keys=memory.keys.index_select(0, new_order),
                values=memory.values.index_select(0, new_order),
                source=memory.source.select(new_order),
            )
        state = memory.state.index_select(0, new_order)
        self._remember(incremental_state, memory._replace(state=state))

    def max_positions(self) -> int:
        """Return the maximum number of tokens of a target sentence."""
        return MAX_POSITIONS


def get_bias(layer: nn.Linear) -> Tensor:
    """Return a linear layer's bias, or zeros if it has none."""
    bias: Tensor | None = layer.bias
    return layer.weight.new_zeros(layer.weight.size(0)) if bias is None else bias
