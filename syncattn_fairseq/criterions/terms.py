"""The syntactic losses, each a term of the criterion.

A term looks at what the model returned and at the batch, and gives a loss that is summed over the
batch (fairseq divides it by the sample size) and numbers to log. A new loss is a new class here
and a line in the criterion's ``__init__``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from fairseq.logging import metrics
from torch import Tensor

from ..functional import (
    dependency_loss,
    project_attention,
    project_distances,
    sync_attention_loss,
)
from ..functional.dbsa import labels_in_view

Log = dict[str, Tensor]


class Term(ABC):
    """A loss with its weight.

    Args:
        name: under which it is logged.
        weight: its λ in the sum.
    """

    def __init__(self, name: str, weight: float) -> None:
        self.name = name
        self.weight = weight

    @abstractmethod
    def applies(self, extra: dict[str, Any], sample: dict[str, Any]) -> bool:
        """Say whether model and batch have what this loss looks at."""

    @abstractmethod
    def __call__(
        self, extra: dict[str, Any], sample: dict[str, Any], sample_size: int
    ) -> tuple[Tensor, Log]:
        """Return the loss, summed, and the numbers to log, summed; all stay on the device."""


class DependencyTerm(Term):
    """Cross-entropy of the dependency heads with the parse (SyncAttn Eq. 5), of one side.

    Args:
        side: ``src`` or ``tgt``; the target's rows see no column to their right.
        weight: λ_dep.
        normalization: ``tokens``: the mean over labels, times the sample size, so that λ weighs
            the same in every batch. ``sum``: the equation's sum as it stands.
    """

    def __init__(self, side: str, weight: float, normalization: str) -> None:
        super().__init__(f"{side}_dep_loss", weight)
        self.side = side
        self.causal = side == "tgt"
        self.normalization = normalization

    def applies(self, extra: dict[str, Any], sample: dict[str, Any]) -> bool:
        """Say whether this side has dependency heads, and the data parses for them.

        Raises:
            ValueError: heads are to be trained, and the training data has no parses.
        """
        if f"{self.side}_dependency" not in extra:
            return False
        if f"{self.side}_parents" in sample:
            return True
        if torch.is_grad_enabled() and self.weight > 0:
            side = {"src": "source", "tgt": "target"}[self.side]
            raise ValueError(
                f"the training data has no dependency heads on the {side} side: binarise it with "
                f"syncattn-preprocess, or train without them (--{self.side}-dep-weight 0)"
            )
        return False

    def __call__(
        self, extra: dict[str, Any], sample: dict[str, Any], sample_size: int
    ) -> tuple[Tensor, Log]:
        """Average over the heads; a batch without labels gives 0."""
        attention = extra[f"{self.side}_dependency"]
        parents = sample[f"{self.side}_parents"]
        heads = attention.size(1)
        total, labels = dependency_loss(
            attention, parents.unsqueeze(1).expand(-1, heads, -1), self.causal
        )
        total, labels = total / heads, labels // heads
        with torch.no_grad():
            correct = attention.mean(1).argmax(-1) == parents
            correct &= labels_in_view(parents, self.causal)
        log = {
            self.name: total.detach(),
            f"{self.side}_dep_labels": labels,
            f"{self.side}_dep_correct": correct.sum(),
        }
        if self.normalization == "tokens":
            total = total * sample_size / labels.clamp_min(1)
        return total, log


class SyncAttentionTerm(Term):
    """Distance of the decoder's dependency head to the encoder's, projected (SyncAttn Eq. 7-9).

    Several heads are averaged first.

    Args:
        weight: λ_sync.
        pad: index of padding in the target.
        eos: index of the end of sentence if its rows and columns are to be left out, or None.
    """

    def __init__(self, weight: float, pad: int, eos: int | None) -> None:
        super().__init__("sync_loss", weight)
        self.pad = pad
        self.eos = eos

    def applies(self, extra: dict[str, Any], sample: dict[str, Any]) -> bool:
        """Say whether the model has a sync layer."""
        return "sync_attention" in extra

    def __call__(
        self, extra: dict[str, Any], sample: dict[str, Any], sample_size: int
    ) -> tuple[Tensor, Log]:
        """Sum over the cells of all sentences."""
        projected = project_attention(
            extra["src_dependency"].mean(1), extra["attn"][0], extra.get("backward_attn")
        )
        masked = sample["target"].eq(self.pad)
        if self.eos is not None:
            masked |= sample["target"].eq(self.eos)
        loss = sync_attention_loss(extra["sync_attention"].mean(1), projected, masked)
        return loss, {self.name: loss.detach()}


class DistanceTerm(Term):
    """What ties the syntactic distances of both sides (LPSI Eq. 7 or 10).

    Layers are paired in order: the bottom gated layers with the lowest sync layer. Heads are
    averaged first.

    Args:
        name: under which it is logged.
        loss: of distances, projected distances and a padding mask, to their sum.
        weight: its λ.
        pad: index of padding in the target.
        shift: pair a distance with the word that its state reads. d_i is measured where y_{i-1} is
            read, and row i of the cross-attention predicts y_i; so the row before is taken.
    """

    def __init__(
        self, name: str, loss: Callable[..., Tensor], weight: float, pad: int, shift: bool
    ) -> None:
        super().__init__(name, weight)
        self.loss = loss
        self.pad = pad
        self.shift = shift

    def applies(self, extra: dict[str, Any], sample: dict[str, Any]) -> bool:
        """Say whether the model ties distances, and this loss is wanted."""
        return self.weight > 0 and "distance_attn" in extra

    def __call__(
        self, extra: dict[str, Any], sample: dict[str, Any], sample_size: int
    ) -> tuple[Tensor, Log]:
        """Sum over the pairs of layers, and over words or pairs of words."""
        padding = sample["target"].eq(self.pad)
        losses = []
        for source, target, cross_attention in zip(
            extra["src_distances"], extra["tgt_distances"], extra["distance_attn"], strict=True
        ):
            distances = target.mean(1)
            projected = project_distances(source.mean(1), cross_attention)
            masked = padding
            if self.shift:
                distances, projected = distances[:, 1:], projected[:, :-1]
                masked = padding[:, 1:]
            losses.append(self.loss(distances, projected, masked))
        loss = torch.stack(losses).sum()
        return loss, {self.name: loss.detach()}


def reduce_terms(logs: list[dict[str, Any]], sample_size: float) -> None:
    """Hand to fairseq what the terms logged, over all workers.

    Logged are ``src_dep_loss`` and ``tgt_dep_loss``, the mean of a label in nats; ``src_uas`` and
    ``tgt_uas``, the percentage of labels that the heads attend to most; and ``sync_loss``,
    ``sync_mse_loss`` and ``sync_rank_loss``, the mean over the sample size. Means are over whole
    logging intervals, and nothing waits for the device until one is printed.
    """
    for side in ("src", "tgt"):
        labels = f"{side}_dep_labels"
        if not any(labels in log for log in logs):
            continue
        for key in (f"{side}_dep_loss", f"{side}_dep_correct", labels):
            metrics.log_scalar_sum(f"_{key}", sum(log.get(key, 0) for log in logs))
        metrics.log_derived(f"{side}_dep_loss", _ratio(f"_{side}_dep_loss", f"_{labels}"))
        metrics.log_derived(f"{side}_uas", _ratio(f"_{side}_dep_correct", f"_{labels}", scale=100))
    for name in ("sync_loss", "sync_mse_loss", "sync_rank_loss"):
        if any(name in log for log in logs):
            total = sum(log.get(name, 0) for log in logs)
            metrics.log_scalar(name, total / sample_size, sample_size, round=4)


def _ratio(numerator: str, denominator: str, scale: float = 1.0) -> Callable[[Any], float]:
    def ratio(meters: Any) -> float:
        count = float(meters[denominator].sum)
        return round(scale * float(meters[numerator].sum) / count, 3) if count else float("nan")

    return ratio
