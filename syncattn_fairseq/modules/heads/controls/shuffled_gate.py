"""LPSI heads with learned distances in random order, a control of LPSI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ....functional._gates import gate_log_factors, gate_pivots, sum_between
from ...layer_numbers import decoder_layers_option, encoder_layers_option
from ...part import register_part
from ..gated import GatedHeads
from ..heads import Scope

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


@dataclass
class ShuffledGateOptions:
    """Shuffled gates, a control of LPSI: the layers whose heads have them."""

    shuffled_gate_layers: str = encoder_layers_option(
        "whose heads have LPSI's gates with each sentence's distances in random order"
    )
    shuffled_gate_decoder_layers: str = decoder_layers_option()


@register_part("shuffled_gate")
class ShuffledGateHeads(GatedHeads):
    """LPSI heads that put the learned distances of each sentence in random order.

    The gates then have the strength of LPSI's, but open and shut at random: what LPSI gains
    over these heads is due to where its distances are large. The order depends only on the
    sentence, so that it is the same in every epoch and in every batch. In a decoder, it depends on
    the tokens read so far: each query shuffles the distances up to its own in an order of its own.
    """

    Options = ShuffledGateOptions
    title = "gated (shuffled)"
    encoder_layers = "shuffled_gate_layers"
    decoder_layers = "shuffled_gate_decoder_layers"
    exposes = None

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Accept all options, since :class:`.GatedHeads` checks the options of gates."""

    def log_gates(
        self, distances: Float[Tensor, "batch heads tokens"], scope: Scope
    ) -> Float[Tensor, "batch heads tokens tokens"]:
        """Compute the log gates of syntactic distances put in random order."""
        if not scope.causal:
            order = self.share("order", self._shuffle_sentences)
            return super().log_gates(_reorder(distances, order).squeeze(-2), scope)
        order = self.share("order", lambda: self._shuffle_prefixes(distances.size(-1)))
        pivots, between = gate_pivots(_reorder(distances, order), self.temperature)
        own = pivots.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        return sum_between(gate_log_factors(own, between), causal=True)

    def log_gates_of_last(
        self, distances: Float[Tensor, "batch heads tokens"]
    ) -> Float[Tensor, "batch heads 1 tokens"]:
        """Compute the last query's log gates from shuffled distances, for one decoding step."""
        order = self.share("order", lambda: self._shuffle_prefixes(1))
        return super().log_gates_of_last(_reorder(distances, order).squeeze(-2))

    def _shuffle_sentences(self) -> Int[Tensor, "batch 1 tokens"]:
        """Return a random permutation: for each token, the column whose distance it gets."""
        padding = self.view.padding_mask.unsqueeze(1)
        draws = self._draw()
        seeds = draws.masked_fill(padding, 0).sum(-1, keepdim=True)
        return _draw_orders(_mix(draws + seeds), padding)

    def _shuffle_prefixes(self, rows: int) -> Int[Tensor, "batch {rows} tokens"]:
        """Return random permutations of the tokens up to each of the last ``rows`` tokens."""
        draws = self._draw()
        columns = torch.arange(draws.size(-1), device=draws.device)
        last = columns[len(columns) - rows :].unsqueeze(1)
        before = self._number()[:, len(columns) - rows :].unsqueeze(-1) - 1
        hidden = self.view.padding_mask.unsqueeze(1) | (columns > last)
        return _draw_orders(_mix(draws + before), hidden)

    def _draw(self) -> Int[Tensor, "batch 1 tokens"]:
        """Draw a pseudo-random number for each token from the token and its position."""
        return _mix(self.view.tokens + 65_537 * self._number()).unsqueeze(1)

    def _number(self) -> Int[Tensor, "batch tokens"]:
        """Number the tokens of each sentence from 1."""
        return (~self.view.padding_mask).cumsum(1)


def _draw_orders(
    draws: Int[Tensor, "batch rows tokens"], hidden: Bool[Tensor, "batch #rows tokens"]
) -> Int[Tensor, "batch rows tokens"]:
    """Return each row's permutation of the visible columns, sorted by random numbers.

    Columns that are hidden stay behind the others.
    """
    order = draws.masked_fill(hidden, torch.iinfo(draws.dtype).max).argsort(stable=True)
    columns = hidden.to(torch.uint8).argsort(stable=True).expand_as(order)
    return torch.empty_like(order).scatter(-1, columns, order)


def _reorder(
    distances: Float[Tensor, "batch heads tokens"], order: Int[Tensor, "batch rows tokens"]
) -> Float[Tensor, "batch heads rows tokens"]:
    """Return the distances in the order of each row's permutation."""
    heads, rows = distances.size(1), order.size(1)
    index = order.unsqueeze(1).expand(-1, heads, -1, -1)
    return distances.unsqueeze(-2).expand(-1, -1, rows, -1).gather(-1, index)


def _mix(numbers: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """Hash integers to 31 bits."""
    numbers = numbers & 0x7FFFFFFF
    for factor in (0x45D9F3B, 0x119DE1F3):
        numbers = ((numbers ^ (numbers >> 16)) * factor) & 0x7FFFFFFF
    return numbers ^ (numbers >> 16)
