"""Label-smoothed cross-entropy with syntactic losses beside it."""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.dataclass import ChoiceEnum
from fairseq.logging import metrics
from torch import Tensor

from ..functional import sync_mse_loss, sync_rank_loss
from .position_metrics import position_sums, reduce_positions
from .terms import DependencyTerm, DistanceTerm, SyncAttentionTerm, Term, reduce_terms


@dataclass
class SyntaxCriterionConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """The weights. A loss of which the model has no heads is left out, whatever its weight."""

    src_dep_weight: float = field(
        default=0.5, metadata={"help": "weight of the source's dependency loss"}
    )
    tgt_dep_weight: float = field(
        default=0.5, metadata={"help": "weight of the target's dependency loss"}
    )
    dep_normalization: ChoiceEnum(["tokens", "sum"]) = field(  # type: ignore[valid-type]
        default="tokens",
        metadata={"help": "dependency loss: mean over labels times sample size, or plain sum"},
    )
    sync_weight: float = field(
        default=0.5, metadata={"help": "weight of the synchronous attention loss"}
    )
    sync_without_eos: bool = field(
        default=False,
        metadata={"help": "leave the end of sentence out of the synchronous attention loss"},
    )
    sync_mse_weight: float = field(
        default=0.0, metadata={"help": "weight of SynchMSE, which ties syntactic distances"}
    )
    sync_rank_weight: float = field(
        default=0.0, metadata={"help": "weight of SynchRank, which ties their order"}
    )
    sync_margin: float = field(default=1.0, metadata={"help": "margin of SynchRank"})
    sync_shift: bool = field(
        default=False,
        metadata={"help": "SynchMSE and SynchRank: take a distance for that of the word read"},
    )


@register_criterion("label_smoothed_cross_entropy_with_syntax", dataclass=SyntaxCriterionConfig)
class LabelSmoothedCrossEntropyWithSyntax(LabelSmoothedCrossEntropyCriterion):
    r"""The objective of every system (SyncAttn Eq. 10).

    .. math:: L = L_t + \lambda_{dep} L_{dep} + \lambda_{sync} L_{sync}

    What is logged as ``loss`` is :math:`L_t` alone, so that the best checkpoint is the one that
    translates best unless ``--best-checkpoint-metric`` asks otherwise; the objective is logged as
    ``total_loss``, and each part under its own name.
    """

    def __init__(
        self,
        task: Any,
        sentence_avg: bool,
        label_smoothing: float,
        src_dep_weight: float,
        tgt_dep_weight: float,
        dep_normalization: str,
        sync_weight: float,
        sync_without_eos: bool,
        sync_mse_weight: float = 0.0,
        sync_rank_weight: float = 0.0,
        sync_margin: float = 1.0,
        sync_shift: bool = False,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
    ) -> None:
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        eos = task.target_dictionary.eos() if sync_without_eos else None
        self.terms: list[Term] = [
            DependencyTerm("src", src_dep_weight, dep_normalization),
            DependencyTerm("tgt", tgt_dep_weight, dep_normalization),
            SyncAttentionTerm(sync_weight, self.padding_idx, eos),
            DistanceTerm(
                "sync_mse_loss", sync_mse_loss, sync_mse_weight, self.padding_idx, sync_shift
            ),
            DistanceTerm(
                "sync_rank_loss",
                partial(sync_rank_loss, margin=sync_margin),
                sync_rank_weight,
                self.padding_idx,
                sync_shift,
            ),
        ]

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """Compute the objective of a batch.

        Returns:
            The objective, summed; the sample size to divide it by; and what to log.

        Raises:
            ValueError: a dependency loss is to be trained on data without heads.
        """
        net_output = model(**sample["net_input"])
        loss, nll_loss = self.compute_loss(model, net_output, sample, reduce=reduce)
        sample_size = sample["target"].size(0) if self.sentence_avg else sample["ntokens"]
        log: dict[str, Any] = {
            "loss": loss.detach(),
            "nll_loss": nll_loss.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": sample["target"].size(0),
            "sample_size": sample_size,
        }
        if self.report_accuracy:
            log["n_correct"], log["total"] = self.compute_accuracy(model, net_output, sample)

        extra = net_output[1]
        objective = loss
        for term in self.terms:
            if not term.applies(extra, sample):
                continue
            value, numbers = term(extra, sample, sample_size)
            if term.weight != 0:
                objective = objective + term.weight * value
            log.update(numbers)
        log.update(position_sums(extra, sample, self.padding_idx))
        log["total_loss"] = objective.detach()
        return objective, sample_size, log

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log fairseq's metrics, and the mean of each syntactic loss that was computed."""
        super().reduce_metrics(logging_outputs)
        sample_size = sum(log.get("sample_size", 0) for log in logging_outputs)
        total = sum(log.get("total_loss", 0) for log in logging_outputs)
        metrics.log_scalar("total_loss", total / sample_size / math.log(2), sample_size, round=3)
        reduce_terms(logging_outputs, sample_size)
        reduce_positions(logging_outputs)
