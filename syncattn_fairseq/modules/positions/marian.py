"""Marian's position embeddings, which have other frequencies than fairseq's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ...base.errors import DataError
from .positions import Positions, register_positions

if TYPE_CHECKING:
    from jaxtyping import Float, Int

#: Rows of the table of embeddings before the first batch.
_ROWS = 1024


class MarianEmbedding(nn.Module):
    """Marian's sinusoidal position embeddings, which are not trained.

    Token t, from 0, has sin(t / 10000^(2k / D)) in dimension k < D / 2, and the cosine in dimension
    D / 2 + k; fairseq divides by 10000^(k / (D / 2 - 1)).

    Args:
        width: D, even.
        padding_idx: the number of the padding symbol; padding has zeros.
    """

    weights: Tensor

    def __init__(self, width: int, padding_idx: int) -> None:
        super().__init__()
        self.width = width
        self.padding_idx = padding_idx
        #: The longest sentence, for fairseq: any sentence fits.
        self.max_positions = 100_000
        self.register_buffer("weights", torch.zeros(0), persistent=False)
        self._fill(_ROWS)

    def _fill(self, rows: int) -> None:
        """Compute the table of the first ``rows`` positions, after rows of zeros for padding."""
        table = marian_table(rows, self.width)
        padding = table.new_zeros(self.padding_idx + 1, self.width)
        self.weights = torch.cat([padding, table]).to(self.weights)

    def forward(
        self, input: Int[Tensor, "batch tokens"], incremental_state: Any = None
    ) -> Float[Tensor, "batch positions width"]:
        """Return the position embeddings of all tokens, or in incremental decoding of the last."""
        batch, tokens = input.shape
        if tokens > self.weights.size(0) - self.padding_idx - 1:
            self._fill(tokens)
        if incremental_state is not None:
            return self.weights[self.padding_idx + tokens].expand(batch, 1, -1)
        real = input.ne(self.padding_idx)
        return self.weights[(real.cumsum(1) * real + self.padding_idx)]


def marian_table(rows: int, width: int) -> Float[Tensor, "{rows} {width}"]:
    """Compute Marian's embeddings of the first ``rows`` positions, for an even width."""
    steps = torch.arange(width // 2, dtype=torch.float64) * 2 / width
    angles = torch.arange(rows, dtype=torch.float64).unsqueeze(1) / 10000.0**steps
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


@register_positions("marian")
class MarianPositions(Positions):
    """Position embeddings as in Marian, with which MarianMT and OPUS-MT were trained."""

    embedded = True

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Raise `DataError` if another option contradicts Marian's position embeddings."""
        if cfg.positions != "marian":
            return
        for name in ("encoder", "decoder"):
            side = getattr(cfg, name)
            if side.learned_pos:
                raise DataError(f"--positions marian: leave --{name}-learned-pos out")
            if side.embed_dim % 2:
                raise DataError(f"--positions marian: --{name}-embed-dim must be even")
        if cfg.no_token_positional_embeddings:
            raise DataError("--positions marian: leave --no-token-positional-embeddings out")

    @classmethod
    def embed(cls, width: int, padding_idx: int) -> nn.Module:
        """Return Marian's position embeddings, to be used in place of fairseq's."""
        return MarianEmbedding(width, padding_idx)
