"""A recurrent decoder's attention to the source: global, or limited to a window."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor, nn

from ..functional import (
    expected_distances,
    flexible_attention,
    local_attention,
    syntax_directed_attention,
)
from ..functional.sdatt import distances_between, predicted_position, rows_beside_the_next

#: Kinds of the word from which syntax-directed attention counts distances in the tree.
TREE_POSITIONS = ("predicted", "expected")

#: Attention weights ``(B, T, S)`` in float32 or wider, and the predicted positions p, ``(B, T)``,
#: of :class:`PositionPredictor`, or None where no position is predicted.
WeightsAndPosition = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Source:
    """Padding and tree distances of the source sentences, for attention to them.

    Attributes:
        padding_mask: ``(B, S)``, True = padding, on the left or on the right.
        tree_distances: ``(B, S, S)`` edges between words; None if no attention needs them.
    """

    padding_mask: Tensor
    tree_distances: Tensor | None = None

    def select(self, rows: Tensor) -> Self:
        """Return the source sentences at the given rows, ``(b)``, of the batch."""
        trees = self.tree_distances
        return type(self)(
            self.padding_mask.index_select(0, rows),
            None if trees is None else trees.index_select(0, rows),
        )

    @cached_property
    def first(self) -> Tensor:
        """The column of each sentence's first token, ``(B)``."""
        return self.padding_mask.long().argmin(dim=1)

    @cached_property
    def lengths(self) -> Tensor:
        """The number of each sentence's tokens, ``(B)``."""
        return (~self.padding_mask).sum(dim=1)

    @cached_property
    def last(self) -> Tensor:
        """The position of each sentence's last token, counted from its first, ``(B, 1)``."""
        return (self.lengths - 1).unsqueeze(1)

    @cached_property
    def tree_rows(self) -> Tensor:
        """The tree distances in the form read by :func:`.distances_between`."""
        assert self.tree_distances is not None  # the encoder requires them
        return rows_beside_the_next(self.tree_distances)

    @cached_property
    def mask(self) -> Tensor:
        """The addend to scores that hides padding by minus infinity, ``(B, 1, S)``."""
        zeros = torch.zeros_like(self.padding_mask, dtype=torch.float32)
        return zeros.masked_fill(self.padding_mask, -torch.inf).unsqueeze(1)

    def columns(self, position: Tensor) -> Tensor:
        """Convert positions, counted from a sentence's first token, to columns of the batch.

        Both are ``(B, T)``.
        """
        return position + self.first.unsqueeze(1)


class SourceAttention(nn.Module):
    """Base class of a recurrent decoder's attention, which turns scores into weights."""

    @property
    def readers(self) -> list[nn.Linear]:
        """The linear layers of decoder states, which the decoder computes together with its own."""
        return []

    def forward(self, scores: Tensor, state: Tensor, source: Source) -> WeightsAndPosition:
        """Return attention weights and predicted source positions, given scores ``(B, T, S)``.

        The scores are e, -inf for padding; the state is s', ``(B, T, d)``.
        """
        return self.weigh(scores, [reader(state) for reader in self.readers], source)

    def weigh(self, scores: Tensor, readings: list[Tensor], source: Source) -> WeightsAndPosition:
        """Return attention weights and source positions, given scores and outputs of `readers`.

        The outputs are ``(B, T, ...)``.
        """
        raise NotImplementedError


class GlobalAttention(SourceAttention):
    """Attention to the whole source (SDAtt Eq. 3)."""

    def weigh(self, scores: Tensor, readings: list[Tensor], source: Source) -> WeightsAndPosition:
        """Return the softmax of the scores over the whole source, and None for the position."""
        wide = torch.promote_types(scores.dtype, torch.float32)
        return scores.softmax(dim=-1, dtype=wide), None


class PredictsPosition:
    """Mixin of modules that predict a source position from decoder states (SDAtt Eq. 5).

    .. math:: p_i = (J − 1) · sigmoid((4 / d) v_p · tanh(W_p s'_i))

    The paper lacks the factor 4 / d. `v_p` could absorb it, but training with Adam cannot: Adam
    moves every weight by about the learning rate at each update, however small the gradient. While
    attention is still meaningless, all states pull p the same way, and the d terms of the sum grow
    together: within 75 updates the sigmoid saturates for every state, at one end of the
    sentence, and stays there. A mean in place of the sum grows like a single weight, whatever the
    width; times 4, it reaches from 2 % to 98 % of the sentence with weights of one.
    """

    hidden: nn.Linear
    output: nn.Linear

    def add_predictor(self, state_dim: int) -> None:
        """Add the parameters that predict positions from decoder states of size ``state_dim``."""
        self.hidden = nn.Linear(state_dim, state_dim, bias=False)
        self.output = nn.Linear(state_dim, 1, bias=False)
        self.scale = 4 / state_dim

    def predict(self, hidden: Tensor, source: Source) -> Tensor:
        """Return the predicted position p, ``(B, T)``, counted from 0, given `W_p s'_i`."""
        activation = self.output(torch.tanh(hidden)).squeeze(-1)
        return predicted_position(activation * self.scale, source.last)


class PositionPredictor(PredictsPosition, nn.Module):
    """Module that predicts a source position from the decoder's state (SDAtt Eq. 5).

    Args:
        state_dim: d, the size of the state.
    """

    def __init__(self, state_dim: int) -> None:
        super().__init__()
        self.add_predictor(state_dim)

    def forward(self, state: Tensor, source: Source) -> Tensor:
        """Return the predicted positions p, ``(B, T)``, counted from 0 at the first token."""
        return self.predict(self.hidden(state), source)


class LocalAttention(SourceAttention):
    """Attention that fades out around the predicted position (SDAtt Eq. 6).

    Args:
        half_window: D.
        renormalise: make the weights sum to one, unlike in the paper.
    """

    def __init__(self, state_dim: int, half_window: int = 10, renormalise: bool = False) -> None:
        super().__init__()
        self.position = PositionPredictor(state_dim)
        self.half_window = half_window
        self.renormalise = renormalise

    @property
    def readers(self) -> list[nn.Linear]:
        """The linear layer for predicting the position from the decoder's state."""
        return [self.position.hidden]

    def weigh(self, scores: Tensor, readings: list[Tensor], source: Source) -> WeightsAndPosition:
        """Return weights that fade out around the predicted position, and the position."""
        position = self.position.predict(readings[0], source)
        columns = source.columns(position)
        return local_attention(scores, columns, self.half_window, self.renormalise), position


class FlexibleAttention(SourceAttention):
    """Attention in a window of learnt width around a predicted position (Shu and Nakayama).

    Args:
        half_window: D.
    """

    def __init__(self, state_dim: int, half_window: int = 10) -> None:
        super().__init__()
        self.position = PositionPredictor(state_dim)
        self.sharpness = nn.Linear(state_dim, 1)
        self.half_window = half_window

    @property
    def readers(self) -> list[nn.Linear]:
        """The linear layers for predicting the position and the width of the window."""
        return [self.position.hidden, self.sharpness]

    def weigh(self, scores: Tensor, readings: list[Tensor], source: Source) -> WeightsAndPosition:
        """Return weights that fall with distance from the predicted position, and the position."""
        position = self.position.predict(readings[0], source)
        sharpness = readings[1].squeeze(-1).sigmoid()
        columns = source.columns(position)
        return flexible_attention(scores, columns, sharpness, self.half_window), position


class SyntaxDirectedAttention(SourceAttention):
    """Attention to words near one word in the source's dependency tree (SDAtt Eq. 10-11).

    Args:
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

    @property
    def readers(self) -> list[nn.Linear]:
        """The linear layer for predicting the position, or none if distances are averaged."""
        return [] if self.position is None else [self.position.hidden]

    def weigh(self, scores: Tensor, readings: list[Tensor], source: Source) -> WeightsAndPosition:
        """Return attention weights that favour words near in the tree, and the predicted position.

        Distances in the tree are those from that position. If the model predicts none, the position
        is None, and distances are those expected under the scores' softmax.
        """
        assert source.tree_distances is not None  # the encoder requires them
        if self.position is None:
            position, distances = None, expected_distances(scores, source.tree_distances)
        else:
            position = self.position.predict(readings[0], source)
            distances = distances_between(source.columns(position), source.tree_rows)
        return syntax_directed_attention(scores, distances, self.tree_window), position
