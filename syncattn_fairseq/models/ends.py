"""Marian's start vector of the decoder and bias of the output layer."""

import torch
from torch import Tensor, nn


class ZeroStart(nn.Embedding):
    """Decoder embeddings in which ``</s>``, the start of the target, has the vector of padding.

    That vector is zeros in Marian. A model that Transformers has trained since may have another
    one. A decoder reads ``</s>`` only where a translation starts. The weights are the same
    parameter as those of the embeddings that it is made of, so they stay tied to other layers.

    Args:
        embedding: the embeddings.
        start: the number of ``</s>``.
    """

    def __init__(self, embedding: nn.Embedding, start: int) -> None:
        assert embedding.padding_idx is not None
        super().__init__(
            embedding.num_embeddings,
            embedding.embedding_dim,
            embedding.padding_idx,
            _weight=embedding.weight,
        )
        self.weight = embedding.weight
        self.start = start

    def forward(self, input: Tensor) -> Tensor:
        """Return the embeddings of target tokens, with padding's vector for ``</s>``."""
        assert self.padding_idx is not None
        return super().forward(input.masked_fill(input.eq(self.start), self.padding_idx))


def add_output_bias(projection: nn.Linear) -> None:
    """Add a trainable bias, initialised with zeros, to a linear layer without a bias."""
    projection.bias = nn.Parameter(torch.zeros(projection.out_features))
