"""Dependency losses of encoder and decoder: attention against gold parents (SyncAttn Eq. 5)."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...base.errors import DataError
from ...base.option_fields import option
from ...functional.dbsa import gold_parent_surprisals, visible_gold_parents
from .term import Log, SideTerm, average_heads, join_heads, log_ratio, log_sums, register_term


@dataclass
class DependencyLossOptions:
    """Dependency losses of encoder and decoder: their weights and their normalisation."""

    src_dep_weight: float = option(0.5, "weight of the source's dependency loss")
    tgt_dep_weight: float = option(0.5, "weight of the target's dependency loss")
    dep_normalization: str = option(
        "tokens",
        "dependency loss of a sentence: its mean over gold parents, times the number of "
        "target tokens; or the plain sum",
        choices=("tokens", "sum"),
    )


class DependencyTerm(SideTerm):
    """Cross-entropy of gold parents and the dependency attention of the encoder or the decoder.

    Eq. 5 is the sum of `−log A[t, head(t)]` over a sentence. Several heads are averaged.
    """

    Options = DependencyLossOptions

    def applies(self, extra: dict[str, Any], sample: dict[str, Any]) -> bool:
        """Return whether the model returned dependency attention and the batch has gold parents.

        Raises:
            DataError: the loss has a weight, but training lacks the gold parents.
        """
        if self.heads not in extra:
            return False
        if f"{self.side}_parents" in sample:
            return True
        if torch.is_grad_enabled() and self.weight > 0:
            raise DataError(
                f"the batches have no parses of the {self.language_side} side for the model's "
                "dependency heads: train with --task translation_with_syntax on data binarised "
                "with heads (syncattn-preprocess --add adds them), or without this loss "
                f"(--{self.side}-dep-weight 0)"
            )
        return False

    def list_parses(self, exposed: Container[str]) -> set[str]:
        """Return a set with the side (source or target) whose parses this loss reads.

        The set is empty if the weight is 0 or the model has no dependency heads on this side.
        """
        return {self.language_side} if self.weight > 0 and self.heads in exposed else set()

    def __call__(self, extra: dict[str, Any], sample: dict[str, Any]) -> tuple[Tensor, Log]:
        """Return the loss summed over the batch's sentences, and the numbers to log.

        A sentence without gold parents adds 0.
        """
        attention = join_heads(extra[self.heads])
        gold_parents = sample[f"{self.side}_parents"]
        visible = visible_gold_parents(gold_parents, self.causal)
        by_head = gold_parents.unsqueeze(1).expand(attention.shape[:3])
        surprisals = average_heads(gold_parent_surprisals(attention, by_head, visible.unsqueeze(1)))
        losses, counts = surprisals.sum(1), visible.sum(1)
        with torch.no_grad():
            # A parent out of view has a probability of 0, and is never the most probable.
            correct = average_heads(attention).argmax(-1) == gold_parents
        return self.sum_up(losses, counts, sample), {
            self.name: losses.detach().sum(),
            f"{self.side}_dep_parents": counts.sum(),
            f"{self.side}_dep_correct": correct.sum(),
        }

    @classmethod
    def log_metrics(cls, logs: list[dict[str, Any]]) -> None:
        """Log the mean loss per gold parent in nats, and the unlabelled attachment score.

        The score is the percentage of gold parents with the largest attention of their row.
        """
        count, correct = f"{cls.side}_dep_parents", f"{cls.side}_dep_correct"
        log_sums(logs, cls.name, correct, count)
        log_ratio(cls.name, cls.name, count)
        log_ratio(f"{cls.side}_uas", correct, count, scale=100)


@register_term("src_dep_loss")
class SourceDependencyTerm(DependencyTerm):
    """Dependency loss of the encoder's heads, trained on the source's parses."""

    weight_option = "src_dep_weight"
    numbers = ("src_dep_parents", "src_dep_correct")
    side = "src"


@register_term("tgt_dep_loss")
class TargetDependencyTerm(DependencyTerm):
    """Dependency loss of the decoder's heads, trained on the target's parses.

    A row of the decoder's attention sees no column to its right.
    """

    weight_option = "tgt_dep_weight"
    numbers = ("tgt_dep_parents", "tgt_dep_correct")
    side = "tgt"
