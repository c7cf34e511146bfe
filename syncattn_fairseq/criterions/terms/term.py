"""The base class of the syntactic losses, and their registry."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Sequence
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from ...base.errors import DataError
from ...base.option_fields import add_named, check_numbers, flag
from ...data.fields import LossField

Log = dict[str, Tensor]

#: The language side that each prefix of loss and option names stands for.
LANGUAGE_SIDES = {"src": "source", "tgt": "target"}


class Term(ABC):
    """A syntactic loss, added to the cross-entropy with a weight λ.

    A term looks at the batch and at what the model returned besides its scores, and returns a sum
    over the sentences. The weight of a sentence must not depend on the others: then the objective
    of a batch is the sum of those of its parts, however the batch is split over steps and workers,
    and whatever fairseq divides by (``--sentence-avg``).

    Args:
        options: the criterion's, with those of :attr:`Options`.
        task: fairseq's, which has the dictionaries.

    Raises:
        DataError: the weight, or another option, is a number that is too small.
    """

    #: The loss's options, a dataclass like those of heads, which is added to the criterion's.
    Options: ClassVar[type]
    #: The name of the option for the weight, λ.
    weight_option: ClassVar[str]
    #: The name under which the loss is registered and logged.
    name: ClassVar[str]
    #: The names of the other numbers that the loss logs.
    numbers: ClassVar[tuple[str, ...]] = ()

    def __init__(self, options: Any, task: Any) -> None:
        check_numbers(options, self.Options)
        self.weight: float = getattr(options, self.weight_option)
        if not self.weight >= 0:
            raise DataError(f"{flag(self.weight_option)} {self.weight}: must be 0 or more")
        self.pad: int = task.target_dictionary.pad()

    @abstractmethod
    def applies(self, extra: dict[str, Any], sample: dict[str, Any]) -> bool:
        """Return whether the model's output and the batch have all inputs of this loss."""

    @abstractmethod
    def __call__(self, extra: dict[str, Any], sample: dict[str, Any]) -> tuple[Tensor, Log]:
        """Return the loss and further numbers to log, all summed over the batch and on the device.

        The criterion multiplies the loss by its weight, and logs it without. The numbers have
        names of :attr:`numbers`. The criterion logs zeros for those that a batch lacks, since
        fairseq sums what all workers log, and needs the same names of each.

        Args:
            extra: what the model returned besides its scores.
            sample: the batch.
        """

    def list_fields(self) -> frozenset[LossField]:
        """Return the batch fields read by this loss besides gold parents; by default none."""
        return frozenset()

    def list_parses(self, exposed: Container[str]) -> set[str]:
        """Return the sides (``source``, ``target``) whose parses this loss reads.

        ``exposed`` has the names of the tensors that the model's heads expose.
        """
        return {field.side for field in self.list_fields() if field.control != "words"}

    @classmethod
    def log_metrics(cls, logs: list[dict[str, Any]]) -> None:
        """Log this loss's metrics, given the logs of all workers; by default its mean per token.

        The criterion has already logged the sum of ``ntokens``. This is called if the loss applied
        to any batch.
        """
        log_sums(logs, cls.name)
        log_ratio(cls.name, cls.name, "ntokens", digits=4)


class SideTerm(Term):
    """Base class of losses on the dependency heads of either the encoder or the decoder.

    With ``--dep-normalization tokens``, each sentence's mean is multiplied by its number of target
    tokens, over which the cross-entropy sums: λ then means the same for sentences with few gold
    parents (a decoder sees only those to the left) and with many. ``sum`` is a paper's equation.
    """

    #: ``src`` for the encoder's heads, ``tgt`` for the decoder's.
    side: ClassVar[str]

    def __init__(self, options: Any, task: Any) -> None:
        super().__init__(options, task)
        self.language_side = LANGUAGE_SIDES[self.side]
        self.heads = f"{self.side}_dependency"
        self.causal = self.side == "tgt"
        self.by_tokens = str(options.dep_normalization) == "tokens"

    def sum_up(self, losses: Tensor, counts: Tensor, sample: dict[str, Any]) -> Tensor:
        """Add up the sentences' losses ``(B)``, normalised as ``--dep-normalization`` says.

        Each of the losses is a sum over ``counts`` words of a sentence, ``(B)``.
        """
        if self.by_tokens:
            tokens = sample["target"].ne(self.pad).sum(1)
            losses = losses * (tokens / counts.clamp_min(1))
        return losses.sum()


#: The registered losses by name, in the order in which they are added and logged.
TERMS: dict[str, type[Term]] = {}
#: Functions to call whenever another loss is registered.
OBSERVERS: list[Callable[[], None]] = []

T = TypeVar("T", bound=type[Term])


def register_term(name: str) -> Callable[[T], T]:
    """Return a decorator that registers a loss under a name, in a ``--user-dir`` too.

    Raises:
        DataError: the name is taken.
    """

    def register(term: T) -> T:
        add_named(TERMS, name, term, "loss")
        term.name = name
        for notify in OBSERVERS:
            notify()
        return term

    return register


def join_heads(layers: Sequence[Tensor]) -> Tensor:
    """Concatenate the tensors ``(B, h, ...)`` of several layers along their attention heads, h."""
    return layers[0] if len(layers) == 1 else torch.cat(list(layers), dim=1)


def average_heads(exposed: Tensor) -> Tensor:
    """Average a tensor ``(B, h, ...)`` over its attention heads, h.

    A single head needs no kernel.
    """
    return exposed.squeeze(1) if exposed.size(1) == 1 else exposed.mean(1)


def log_sums(logs: list[dict[str, Any]], *names: str) -> None:
    """Log sums over all workers under names that begin with ``_``, for :func:`log_ratio`.

    The logs are those of all workers. Each sum must be logged once: a second call adds to it.
    """
    from fairseq.logging import metrics

    for name in names:
        metrics.log_scalar_sum(f"_{name}", sum(log.get(name, 0) for log in logs))


def log_ratio(name: str, above: str, below: str, scale: float = 1.0, digits: int = 3) -> None:
    """Log the ratio of two sums that :func:`log_sums` logged, or NaN if both sums are 0.

    fairseq asks for it after every update and prints few of them. So it stays on the device, and
    only printing waits. ``scale`` is 100 for a percentage.

    Args:
        name: the name of the ratio in the log.
        above: the name of the numerator's sum, logged by :func:`log_sums`.
        below: the name of the denominator's sum.
        scale: a factor.
        digits: the number of decimals.
    """

    def divide(meters: Any) -> Tensor:
        ratio = wide_sum(meters, above) / wide_sum(meters, below)
        return (scale * ratio).round(decimals=digits)

    from fairseq.logging import metrics

    metrics.log_derived(name, divide)


def wide_sum(meters: Any, name: str) -> Tensor:
    """Return the sum logged by :func:`log_sums` under a name, in float64.

    That is precise enough for rounding to decimals.
    """
    return torch.as_tensor(meters[f"_{name}"].sum).double()
