"""The recurrent encoder, a bidirectional GRU."""

from typing import Any

import torch
from fairseq.models import FairseqEncoder
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from ..data.fields import TREE_DISTANCES
from ..modules.batch_view import require_field

MAX_POSITIONS = 100_000


class BidirectionalGRUEncoder(FairseqEncoder):
    """Bidirectional GRU encoder: each token's annotation depends on the whole sentence."""

    #: Number of consecutive rows that are hypotheses of one sentence; 1 if that is not known.
    beam_size = 1

    def __init__(
        self,
        dictionary: Any,
        embed_tokens: nn.Embedding,
        hidden_size: int,
        dropout: float,
        reads_trees: bool = False,
    ) -> None:
        super().__init__(dictionary)
        self.embed_tokens = embed_tokens
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)
        self.gru = nn.GRU(
            embed_tokens.embedding_dim, hidden_size, batch_first=True, bidirectional=True
        )
        self.reads_trees = reads_trees

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        src_tree_distances: Tensor | None = None,
        lengths_on_cpu: list[int] | None = None,
        **unused: Tensor,
    ) -> dict[str, list[Tensor]]:
        """Encode source tokens to annotations, a vector for each token.

        Args:
            src_tokens: ``(B, S)``, padded on either side.
            src_lengths: not used; fairseq passes it.
            src_tree_distances: ``(B, S, S)``, edges between the words of any two tokens.
            lengths_on_cpu: of the sentences, end of sentence included. Without them, a GPU has to
                be waited for, since PyTorch packs sequences by lengths that the CPU knows.
            unused: fields for other models.

        Returns:
            ``annotations``, h, ``(B, S, 2 d)``; ``summary``, the backward GRU's state at the first
            token, ``(B, d)``; ``padding_mask``, ``(B, S)``; ``tree_distances`` if they are needed.

        Raises:
            DataError: tree distances are needed but missing.
        """
        trees = []
        if self.reads_trees:
            reader = "attention to the source"
            trees = [require_field(src_tree_distances, TREE_DISTANCES.name, reader)]
        padding_mask = src_tokens.eq(self.dictionary.pad())
        embedded = self.dropout(self.embed_tokens(src_tokens))
        # PyTorch's GRU requires padding on the right; nothing else here does.
        columns = torch.arange(src_tokens.size(1), device=src_tokens.device)
        shift = padding_mask.long().argmin(dim=1, keepdim=True)
        lengths = (~padding_mask).sum(dim=1)
        if lengths_on_cpu is None:
            lengths_on_cpu = lengths.tolist()
        # PyTorch could sort the sentences by length itself, but would wait for the device, too.
        order = lengths.argsort(descending=True, stable=True)
        back = order.argsort()
        packed = nn.utils.rnn.pack_padded_sequence(
            _columns(embedded, (columns + shift) % len(columns)).index_select(0, order),
            sorted(lengths_on_cpu, reverse=True),
            batch_first=True,
        )
        states, last = self.gru(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(
            states, batch_first=True, total_length=len(columns)
        )
        states = states.index_select(0, back)
        return {
            "annotations": [_columns(states, (columns - shift) % len(columns))],
            "summary": [last[1].index_select(0, back)],
            "padding_mask": [padding_mask],
            "tree_distances": trees,
        }

    def reorder_encoder_out(
        self, encoder_out: dict[str, list[Tensor]], new_order: Tensor
    ) -> dict[str, list[Tensor]]:
        """Reorder the sentences in the encoder's output as the beam was reordered."""
        if is_within_beams(self, encoder_out["annotations"][0], new_order):
            return encoder_out
        return {
            name: [tensor.index_select(0, new_order) for tensor in tensors]
            for name, tensors in encoder_out.items()
        }

    def max_positions(self) -> int:
        """Return the maximum number of tokens of a source sentence."""
        return MAX_POSITIONS


def is_within_beams(part: Any, rows: Tensor, new_order: Tensor) -> bool:
    """Return whether a new order only moves hypotheses within the beam of their sentence."""
    return part.beam_size > 1 and rows.size(0) == new_order.size(0)


def _columns(x: Tensor, index: Tensor) -> Tensor:
    """Select each row's columns ``index``, ``(B, S)``, from ``(B, S, D)``."""
    return x.gather(1, index.unsqueeze(-1).expand_as(x))
