"""How far systems are from their baselines, over several trainings of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from .intervals import welch_interval


@dataclass(frozen=True)
class Difference:
    """The difference of one system to its baseline in one measure."""

    seeds: Sequence[float]
    """Of each training, to the mean of the baseline's."""
    mean: float
    interval: tuple[float, float] | None
    """The 95 % interval of the mean (Welch); None if there are too few trainings."""

    @staticmethod
    def of(values: Sequence[float], baseline: Sequence[float]) -> Difference | None:
        """Compare the numbers of two systems; None if one has none."""
        if not values or not baseline:
            return None
        other = mean(baseline)
        found = welch_interval(values, baseline)
        interval = (found.low, found.high) if found else None
        return Difference([value - other for value in values], mean(values) - other, interval)


@dataclass(frozen=True)
class Comparison:
    """The difference of a system's BLEU to its baseline's."""

    name: str
    baseline: str
    difference: float
    p: float | None
    """Corrected for all comparisons made; None if it is unknown."""


@dataclass(frozen=True)
class Measure:
    """What is compared."""

    title: str
    higher_is_better: bool = True


@dataclass(frozen=True)
class Line:
    """The differences of one system in each measure."""

    name: str
    differences: Sequence[Difference | None]


@dataclass(frozen=True)
class Group:
    """Systems below a heading."""

    title: str
    lines: Sequence[Line]
