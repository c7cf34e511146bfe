"""Label-smoothed cross-entropy with additional syntactic losses."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, make_dataclass
from typing import Any

import torch
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY, register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel, FairseqDecoder
from fairseq.models.transformer import TransformerModelBase
from hydra.core.config_store import ConfigStore
from torch import Tensor

from ..base.errors import DataError
from ..base.option_fields import as_fairseq
from ..data.fields import LossField
from ..registered_names import CRITERION
from .label_smoothing import sum_smoothed_loss, sum_smoothed_loss_of_scores
from .position_metrics import position_sums, reduce_positions
from .terms import TERMS, Term
from .terms.term import OBSERVERS, log_ratio, log_sums

logger = logging.getLogger(__name__)


def make_config() -> type[FairseqDataclass]:
    """Return the criterion's option class: fairseq's options and those of all registered losses.

    A loss is left out if the model lacks the heads for it, whatever its weight.
    """
    options = dict.fromkeys(as_fairseq(term.Options) for term in TERMS.values())
    bases = (LabelSmoothedCrossEntropyCriterionConfig, *options)
    return make_dataclass("SyntaxCriterionConfig", [], bases=bases)


@register_criterion(CRITERION, dataclass=make_config())
class LabelSmoothedCrossEntropyWithSyntax(LabelSmoothedCrossEntropyCriterion):
    """Label-smoothed cross-entropy plus weighted syntactic losses (SyncAttn Eq. 6).

    .. math:: L = L_t + λ_dep L_dep + λ_sync L_sync

    Only `L_t` is logged as ``loss``, so that the best checkpoint is the one that translates best
    unless ``--best-checkpoint-metric`` says otherwise; the objective is logged as ``total_loss``,
    and each part under its own name.

    Every batch logs the same names, with zeros for losses that do not apply to it: fairseq sums the
    logs of all workers, and of all batches of an update, as those of the first are named.

    Args:
        task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy: fairseq's.
        terms: the syntactic losses.
        fast: in training on a CPU, give the vocabulary no scores where the target is padding; the
            gradients are equal but for their last digits.
    """

    def __init__(
        self,
        task: Any,
        sentence_avg: bool,
        label_smoothing: float,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
        terms: Sequence[Term] = (),
        fast: bool = False,
    ) -> None:
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        self.terms = list(terms)
        self.fast = fast
        #: Losses whose weight the user has set, and which have not applied to any batch yet.
        self.unused = {term.name: term for term in terms if has_own_weight(term)}
        #: For the name of each loss in the log: 1 if it applied to the last batch, or else 0.
        self.applied: dict[str, int] = {}
        #: The names of the numbers that each training batch logs; empty before the first batch.
        self.logged: frozenset[str] = frozenset()

    @classmethod
    def build_criterion(cls, cfg: Any, task: Any) -> LabelSmoothedCrossEntropyWithSyntax:
        """Build the criterion with every registered syntactic loss."""
        return cls(
            task,
            cfg.sentence_avg,
            cfg.label_smoothing,
            cfg.ignore_prefix_size,
            cfg.report_accuracy,
            [term(cfg, task) for term in TERMS.values()],
            fast=getattr(getattr(task, "cfg", None), "fast", False),
        )

    def list_fields(self) -> frozenset[LossField]:
        """Return the batch fields read by the syntactic losses besides gold parents."""
        fields: frozenset[LossField] = frozenset()
        for term in self.terms:
            fields |= term.list_fields()
        return fields

    def reads_parses(self) -> bool:
        """Return whether a loss may read parses even if the model has no dependency heads."""
        return any(
            type(term).__module__.partition(".")[0] != __name__.partition(".")[0]
            or any(field.control != "words" for field in term.list_fields())
            for term in self.terms
        )

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """Return a batch's summed objective, its sample size and the numbers to log."""
        objective, log = self.compute(model, sample, reduce)
        counts = self.count(sample)
        return objective, counts["sample_size"], {**log, **counts}

    def count(self, sample: dict[str, Any]) -> dict[str, int]:
        """Return a batch's numbers of tokens and sentences, and which losses applied to it.

        These numbers are known without waiting for the device.

        Rows of padding do not count.
        """
        sentences = sample["nsentences"]
        size = sentences if self.sentence_avg else sample["ntokens"]
        counts = {"ntokens": sample["ntokens"], "nsentences": sentences, "sample_size": size}
        return {**counts, **self.applied}

    def compute(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return a batch's summed objective and the numbers to log, as tensors on the device.

        On a GPU, this reads nothing that the host knows of the batch, and does not wait: a CUDA
        graph may hold it, with the backward pass of the objective.
        """
        scored = sample
        if self.fast and self.training and isinstance(model, TransformerModelBase):
            net_output, scored = self._score_tokens(model, sample)
        else:
            net_output = model(**sample["net_input"])
        loss, nll_loss = self.compute_loss(model, net_output, scored, reduce=reduce)
        log: dict[str, Tensor] = {"loss": loss.detach(), "nll_loss": nll_loss.detach()}
        if self.report_accuracy:
            log["n_correct"], log["total"] = self.compute_accuracy(model, net_output, scored)

        # fairseq's recurrent and convolutional models return nothing, or attention alone.
        extra = net_output[1] if isinstance(net_output[1], dict) else {}
        objective, nothing = loss, loss.new_zeros(())
        for term in self.terms:
            applies = term.applies(extra, sample)
            self.applied[_name_applied(term)] = int(applies)
            log |= dict.fromkeys((term.name, *term.numbers), nothing)
            if not applies:
                if self.training and self.unused.pop(term.name, None):
                    logger.warning(
                        "%s: the loss has a weight, but the model or the batch lacks what the "
                        "loss reads, so the loss is left out; syncattn-options lists the heads "
                        "that each model has",
                        term.name,
                    )
                continue
            self.unused.pop(term.name, None)
            value, numbers = term(extra, sample)
            if term.weight != 0:
                objective = torch.add(objective, value, alpha=term.weight)
            check_numbers(term, numbers)
            log.update({term.name: value.detach(), **numbers})
        log.update(position_sums(extra, sample, self.padding_idx))
        log["total_loss"] = objective.detach()
        if self.training:
            self.logged = self.logged or frozenset(log)
            assert log.keys() == self.logged, "workers would wait for each other for ever"
        return objective, log

    def _score_tokens(self, model: Any, sample: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the model's output and the batch, both without padding in the target."""
        features, extra = model(**sample["net_input"], features_only=True)
        if self.ignore_prefix_size == 0 and has_plain_scores(model, features):
            tokens = sample["target"].ne(self.padding_idx)
            features = features[tokens]
            sample = {**sample, "target": sample["target"][tokens]}
        return (model.output_layer(features), extra), sample

    def compute_loss(
        self, model: Any, net_output: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return the label-smoothed cross-entropy and the negative log-likelihood, in nats.

        The numbers are fairseq's. Their sums are computed with fewer passes over the scores.

        Args:
            model: the model.
            net_output: the model's output: scores ``(B, T, V)`` and extras.
            sample: the batch.
            reduce: whether to sum over tokens.
        """
        if not reduce:
            return super().compute_loss(model, net_output, sample, reduce)
        scores = net_output[0]
        if self.ignore_prefix_size == 0 and has_plain_scores(model, scores):
            target = model.get_targets(sample, net_output).flatten()
            scores = scores.flatten(0, -2)
            return sum_smoothed_loss_of_scores(scores, target, self.eps, self.padding_idx)
        log_probs, target = self.get_lprobs_and_target(model, net_output, sample)
        return sum_smoothed_loss(log_probs, target, self.eps, self.padding_idx)

    def compute_accuracy(
        self, model: Any, net_output: Any, sample: dict[str, Any]
    ) -> tuple[Tensor, Tensor]:
        """Return the numbers of correctly predicted target tokens and of all target tokens.

        The numbers are fairseq's, computed without waiting for the device.
        """
        log_probs, target = self.get_lprobs_and_target(model, net_output, sample)
        counted = target.ne(self.padding_idx)
        return (log_probs.argmax(1).eq(target) & counted).sum(), counted.sum()

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log fairseq's metrics, and the metrics of each syntactic loss computed for any batch."""
        super().reduce_metrics(logging_outputs)
        log_sums(logging_outputs, "total_loss", "sample_size", "ntokens")
        log_ratio("total_loss", "total_loss", "sample_size", scale=1 / math.log(2))
        for term in TERMS.values():
            if sum(log.get(_name_applied(term), 0) for log in logging_outputs):
                term.log_metrics(logging_outputs)
        reduce_positions(logging_outputs)


def has_plain_scores(model: Any, scores: Any) -> bool:
    """Return whether a model's probabilities are the softmax of its float32 scores on a CPU."""
    decoder: Any = getattr(model, "decoder", None)
    kinds = (BaseFairseqModel, TransformerModelBase)
    return (
        getattr(model.get_normalized_probs, "__func__", None)
        in [kind.get_normalized_probs for kind in kinds]
        and type(decoder).get_normalized_probs is FairseqDecoder.get_normalized_probs
        and getattr(decoder, "adaptive_softmax", None) is None
        and scores.dtype == torch.float32
        and scores.device.type == "cpu"
    )


def check_numbers(term: Term, numbers: Mapping[str, Tensor]) -> None:
    """Check that a loss logs only scalar tensors, under names declared by the loss's class.

    Args:
        term: the loss.
        numbers: what it logs of a batch.

    Raises:
        DataError: it logs another name, or not a tensor of one number.
    """
    if unnamed := sorted(numbers.keys() - {term.name, *term.numbers}):
        raise DataError(
            f"{term.name}: the loss logs {unnamed[0]}, which its class does not list in "
            "`numbers`; list all logged names there, since all workers of a training log the "
            "same names"
        )
    for name, value in numbers.items():
        if not isinstance(value, Tensor) or value.numel() != 1:
            raise DataError(
                f"{term.name}: {name}: log a tensor with a single number, on the model's device"
            )


def _name_applied(term: Term | type[Term]) -> str:
    """Return the name under which the log counts the batches that a loss applied to."""
    return f"{term.name}_applied"


def has_own_weight(term: Term) -> bool:
    """Return whether a loss is switched on (weight not 0) with another weight than its default."""
    default = {option.name: option.default for option in fields(term.Options)}
    return term.weight != 0 and term.weight != default.get(term.weight_option)


def _take_up_options() -> None:
    """Add the options of a loss that was registered late to fairseq's and hydra's registries."""
    config = make_config()
    setattr(LabelSmoothedCrossEntropyWithSyntax, "__dataclass", config)  # noqa: B010  (fairseq's)
    CRITERION_DATACLASS_REGISTRY[CRITERION] = config
    node = config()
    node._name = CRITERION
    ConfigStore.instance().store(name=CRITERION, group="criterion", node=node, provider="fairseq")


OBSERVERS.append(_take_up_options)
