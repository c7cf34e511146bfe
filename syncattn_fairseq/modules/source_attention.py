"""A recurrent decoder's attention to the source; its kinds differ in how far they see."""

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

#: The word from which syntax-directed attention counts distances in the tree.
TREE_POSITIONS = ("predicted", "expected")

#: Weights ``(B, T, S)`` in float32 or wider, and p as :class:`PositionPredictor` returns it, or
#: None where no position is predicted.
Looking = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Source:
    """What attention needs to know about the source sentences.

    Attributes:
        padding_mask: ``(B, S)``, True = padding, on the left or on the right.
        tree_distances: ``(B, S, S)`` edges between words; None if no attention needs them.
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
        """Turn positions ``(B, T)``, counted from each sentence's first token, into columns."""
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
    """Predicts from the decoder's state which source position it translates (SDAtt Eq. 5).

    .. math:: p_i = (J − 1) · sigmoid((4 / d) v_p · tanh(W_p s'_i))

    The paper lacks the factor 4 / d. `v_p` could absorb it, but training with Adam cannot: Adam
    moves every weight by about the learning rate at each update, however small the gradient. While
    attention is still meaningless, all states pull p the same way, and the d terms of the sum grow
    together: within some fifty updates the sigmoid saturates for every state, at one end of the
    sentence, and stays there. A mean in place of the sum grows like a single weight, whatever the
    width; times 4, it reaches from 2 % to 98 % of the sentence with weights of one.

    Args:
        state_dim: d, the size of the state.
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
        renormalise: make the weights sum to one, unlike in the paper.
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
    """Attention in a window of predicted size around the expected position (Shu and Nakayama).

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
    """Attention near the expected word in the source's tree (SDAtt Eq. 10-11).

    Args:
        state_dim: of the decoder's state.
        tree_window: n, in edges.
        tree_position: ``predicted``: that word is at the position predicted from the state, as in
            the paper. ``expected``: the distances are averaged over all words, weighted by the
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
