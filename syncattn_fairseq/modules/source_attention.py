"""Attentions of a recurrent decoder to the source, told apart by how far they see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from ..functional import (
    distances_from,
    expected_distances,
    flexible_attention,
    local_attention,
    predicted_position,
    syntax_directed_attention,
)

#: Where syntax-directed attention takes the distances in the tree from.
TREE_POSITIONS = ("predicted", "expected")

#: Weights ``(B, T, S)`` in float32 or wider, and p as :class:`PositionPredictor` returns it, or
#: None where no position is predicted.
Looking = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Source:
    """What attentions ask of the source sentences.

    Attributes:
        padding_mask: ``(B, S)``, True = padding, on the left or on the right.
        tree_distances: ``(B, S, S)`` edges between words, None where no attention asks.
    """

    padding_mask: Tensor
    tree_distances: Tensor | None = None

    @cached_property
    def first(self) -> Tensor:
        """The column of each sentence's first token, ``(B)``."""
        return self.padding_mask.long().argmin(dim=1)

    @cached_property
    def lengths(self) -> Tensor:
        """The number of each sentence's tokens, ``(B)``."""
        return (~self.padding_mask).sum(dim=1)

    def columns(self, position: Tensor) -> Tensor:
        """Return positions counted from each sentence's first token, ``(B, T)``, as columns."""
        return position + self.first.unsqueeze(1)


class GlobalAttention(nn.Module):
    """Attention to the whole source (SDAtt Eq. 3)."""

    def forward(self, scores: Tensor, state: Tensor, source: Source) -> Looking:
        """Turn scores into weights.

        Args:
            scores: e, ``(B, T, S)``, minus infinity for padding.
            state: s', ``(B, T, d)``.
            source: what is attended to.

        Returns:
            See :data:`Looking`.
        """
        wide = torch.promote_types(scores.dtype, torch.float32)
        return scores.softmax(dim=-1, dtype=wide), None


class PositionPredictor(nn.Module):
    """Expects, from its state, which source position the decoder translates (SDAtt Eq. 5).

    .. math:: p_i = (J − 1) · sigmoid((4 / d) v_p · tanh(W_p s'_i))

    The factor is ours: the paper's `v_p` absorbs it, but Adam does not. It moves every weight
    by about the learning rate at each update, however small the gradient is. As long as attention
    means nothing yet, all states pull p the same way, and the d terms of the sum grow together:
    within some fifty updates the sigmoid is flat for every state, at one end of the sentence, and
    stays there. A mean in the place of the sum grows as a single weight does, whatever the width;
    times 4, it reaches from 2 % to 98 % of the sentence with weights of one.

    Args:
        state_dim: d, of the state.
    """

    def __init__(self, state_dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(state_dim, state_dim, bias=False)
        self.output = nn.Linear(state_dim, 1, bias=False)
        self.scale = 4 / state_dim

    def forward(self, state: Tensor, source: Source) -> Tensor:
        """Return p, ``(B, T)``, counted from the first token, which is at 0."""
        activation = self.output(torch.tanh(self.hidden(state))).squeeze(-1)
        return predicted_position(activation * self.scale, source.lengths)


class LocalAttention(nn.Module):
    """Attention that fades out around the expected position (SDAtt Eq. 6).

    Args:
        state_dim: of the decoder's state.
        half_window: D.
        renormalise: let the weights sum to one, which they do not in the paper.
    """

    def __init__(self, state_dim: int, half_window: int = 10, renormalise: bool = False) -> None:
        super().__init__()
        self.position = PositionPredictor(state_dim)
        self.half_window = half_window
        self.renormalise = renormalise

    def forward(self, scores: Tensor, state: Tensor, source: Source) -> Looking:
        """Turn scores into weights, as :meth:`GlobalAttention.forward`."""
        position = self.position(state, source)
        columns = source.columns(position)
        return local_attention(scores, columns, self.half_window, self.renormalise), position


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

    def forward(self, scores: Tensor, state: Tensor, source: Source) -> Looking:
        """Turn scores into weights, as :meth:`GlobalAttention.forward`."""
        position = self.position(state, source)
        sharpness = self.sharpness(state).squeeze(-1).sigmoid()
        columns = source.columns(position)
        return flexible_attention(scores, columns, sharpness, self.half_window), position


class SyntaxDirectedAttention(nn.Module):
    """Attention to what is near the expected word in the source's tree (SDAtt Eq. 10-11).

    Args:
        state_dim: of the decoder's state.
        tree_window: n, in edges.
        tree_position: ``predicted``: that word is at the position predicted from the state, as in
            the paper. ``expected``: the distances are the mean of all words', weighted by the
            global attention; nothing is predicted.
    """

    def __init__(
        self, state_dim: int, tree_window: int = 4, tree_position: str = "predicted"
    ) -> None:
        super().__init__()
        self.position = PositionPredictor(state_dim) if tree_position == "predicted" else None
        self.tree_window = tree_window

    def forward(self, scores: Tensor, state: Tensor, source: Source) -> Looking:
        """Turn scores into weights, as :meth:`GlobalAttention.forward`."""
        assert source.tree_distances is not None, "the encoder sees to it"
        if self.position is None:
            position, distances = None, expected_distances(scores, source.tree_distances)
        else:
            position = self.position(state, source)
            distances = distances_from(source.columns(position), source.tree_distances)
        return syntax_directed_attention(scores, distances, self.tree_window), position
