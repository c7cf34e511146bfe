"""The tree-planted losses (Yoshida et al., 2024) of encoder and decoder."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...base.errors import DataError
from ...base.option_fields import flag, option
from ...data.fields import WORD_DISTANCES, LossField, ask_for_word_distances
from ...functional.controls.tree_planted import count_words, planted_losses
from .term import Log, SideTerm, average_heads, join_heads, log_ratio, log_sums, register_term


@dataclass
class PlantedOptions:
    """Tree-planted losses: their weights, and the distance with which attention should fade."""

    src_planted_weight: float = option(0.0, "weight of the source's tree-planted loss")
    tgt_planted_weight: float = option(0.0, "weight of the target's tree-planted loss")
    planted_distance: str = option(
        "tree",
        "distance with which the attention of dependency heads should fade: in edges "
        "of the parse (tree), in words of the text (linear, which needs no parse), or in edges "
        "of a random tree (random)",
        choices=WORD_DISTANCES,
    )


class PlantedTerm(SideTerm):
    """KL divergence of dependency attention and a target that fades with distance between words.

    The heads are averaged. Only words count: the end of the sentence has no target, and attention
    to it is lost. A decoder's row stands for the word that its state predicts, and sees that word
    and those before it. ``--dep-normalization`` counts words in place of gold parents; so the
    weight means the same as that of the dependency loss.
    """

    Options = PlantedOptions

    def __init__(self, options: Any, task: Any) -> None:
        super().__init__(options, task)
        self.distance = str(options.planted_distance)
        self.field = ask_for_word_distances(self.language_side, self.distance)

    def list_fields(self) -> frozenset[LossField]:
        """Return the batch field of distances between words, or none if the weight is 0."""
        return frozenset([self.field]) if self.weight > 0 else frozenset()

    def applies(self, extra: dict[str, Any], sample: dict[str, Any]) -> bool:
        """Return whether the loss's weight is above 0 and model and batch have the loss's inputs.

        Raises:
            DataError: the loss has a weight, but training lacks dependency heads or distances.
        """
        if self.weight <= 0:
            return False
        setting = f"{flag(self.weight_option)} {self.weight}"
        if torch.is_grad_enabled() and self.heads not in extra:
            stack = {"src": "encoder", "tgt": "decoder"}[self.side]
            raise DataError(
                f"{setting}: the model's {stack} has no dependency heads to train: add "
                f"--{stack}-dependency-layer 1"
            )
        if torch.is_grad_enabled() and self.field.name not in sample:
            raise DataError(
                f"{setting}: the batches have no {self.distance} distances of the "
                f"{self.language_side} side: train with --task translation_with_syntax on data "
                "that syncattn-preprocess binarised with heads, or choose --planted-distance "
                "linear, which needs no heads"
            )
        return self.heads in extra and self.field.name in sample

    def __call__(self, extra: dict[str, Any], sample: dict[str, Any]) -> tuple[Tensor, Log]:
        """Return the loss summed over the batch's sentences, and the numbers to log.

        A sentence without words, or without a parse, adds 0.
        """
        attention = average_heads(join_heads(extra[self.heads]))
        distances = sample[self.field.name]
        losses = planted_losses(attention, distances, self.causal).sum(1)
        words = count_words(distances)
        log = {self.name: losses.detach().sum(), f"{self.name}_words": words.sum()}
        return self.sum_up(losses, words, sample), log

    @classmethod
    def log_metrics(cls, logs: list[dict[str, Any]]) -> None:
        """Log the mean tree-planted loss per word in nats."""
        words = f"{cls.name}_words"
        log_sums(logs, cls.name, words)
        log_ratio(cls.name, cls.name, words)


@register_term("src_planted_loss")
class SourcePlantedTerm(PlantedTerm):
    """Tree-planted loss of the encoder's dependency heads."""

    weight_option = "src_planted_weight"
    numbers = ("src_planted_loss_words",)
    side = "src"


@register_term("tgt_planted_loss")
class TargetPlantedTerm(PlantedTerm):
    """Tree-planted loss of the decoder's dependency heads."""

    weight_option = "tgt_planted_weight"
    numbers = ("tgt_planted_loss_words",)
    side = "tgt"
