"""Attentions of a recurrent decoder to the source, told apart by how far they see."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..functional import (
    distances_from,
    flexible_attention,
    local_attention,
    predicted_position,
    syntax_directed_attention,
)


class Source(NamedTuple):
    """What attentions ask of the source sentences.

    Attributes:
        padding_mask: ``(B, S)``, True = padding, on the left or on the right.
        tree_distances: ``(B, S, S)`` edges between words, None where no attention asks.
    """

    padding_mask: Tensor
    tree_distances: Tensor | None = None

    @property
    def first(self) -> Tensor:
        """The column of each sentence's first token, ``(B)``."""
        return self.padding_mask.long().argmin(dim=1)

    @property
    def lengths(self) -> Tensor:
        """The number of each sentence's tokens, ``(B)``."""
        return (~self.padding_mask).sum(dim=1)


class GlobalAttention(nn.Module):
    """Attention to the whole source (SDAtt Eq. 3)."""

    def forward(self, scores: Tensor, state: Tensor, source: Source) -> Tensor:
        """Turn scores into weights.

        Args:
            scores: e, ``(B, T, S)``, minus infinity for padding.
            state: s', ``(B, T, d)``.
            source: what is attended to.

        Returns:
            ``(B, T, S)`` weights in float32 (or wider).
        """
        return scores.softmax(dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))


class PositionPredictor(nn.Module):
    """Expects, from its state, which source position the decoder translates (SDAtt Eq. 5).

    Args:
        state_dim: of the state.
    """

    def __init__(self, state_dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(state_dim, state_dim, bias=False)
        self.output = nn.Linear(state_dim, 1, bias=False)

    def forward(self, state: Tensor, source: Source) -> Tensor:
        """Return p as columns of the source, ``(B, T)``, none beyond the last token."""
        activation = self.output(torch.tanh(self.hidden(state))).squeeze(-1)
        lengths = source.lengths
        position = predicted_position(activation, lengths)
        return position.minimum(lengths.unsqueeze(1) - 1) + source.first.unsqueeze(1)


class LocalAttention(nn.Module):
    """Attention that fades out around the expected position (SDAtt Eq. 6).

    Args:
        state_dim: of the decoder's state.
        half_window: D.
    """

    def __init__(self, state_dim: int, half_window: int = 10) -> None:
        super().__init__()
        self.position = PositionPredictor(state_dim)
        self.half_window = half_window

    def forward(self, scores: Tensor, state: Tensor, source: Source) -> Tensor:
        """Turn scores into weights, as :meth:`GlobalAttention.forward`."""
        return local_attention(scores, self.position(state, source), self.half_window)


class FlexibleAttention(nn.Module):
    """Attention around the expected position in a window of its own choice (Shu and Nakayama).

    Args:
        state_dim: of the decoder's state.
        half_window: D.
    """

    def __init__(self, state_dim: int, half_window: int = 10) -> None:
        super().__init__()
        self.position = PositionPredictor(state_dim)
        self.sharpness = nn.Linear(state_dim, 1)
        self.half_window = half_window

    def forward(self, scores: Tensor, state: Tensor, source: Source) -> Tensor:
        """Turn scores into weights, as :meth:`GlobalAttention.forward`."""
        sharpness = self.sharpness(state).squeeze(-1).sigmoid()
        position = self.position(state, source)
        return flexible_attention(scores, position, sharpness, self.half_window)


class SyntaxDirectedAttention(nn.Module):
    """Attention to what is near the expected word in the source's tree (SDAtt Eq. 10-11).

    Args:
        state_dim: of the decoder's state.
        tree_window: n, in edges.
    """

    def __init__(self, state_dim: int, tree_window: int = 4) -> None:
        super().__init__()
        self.position = PositionPredictor(state_dim)
        self.tree_window = tree_window

    def forward(self, scores: Tensor, state: Tensor, source: Source) -> Tensor:
        """Turn scores into weights, as :meth:`GlobalAttention.forward`."""
        assert source.tree_distances is not None, "the encoder sees to it"
        distances = distances_from(self.position(state, source), source.tree_distances)
        return syntax_directed_attention(scores, distances, self.tree_window)
