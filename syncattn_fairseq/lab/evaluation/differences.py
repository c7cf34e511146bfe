"""How far systems are from their baselines, over several trainings of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING

from ...base.errors import DataError
from .intervals import Interval, welch, welch_interval
from .measures import BLEU, NONE, Measure, Verdict, decide, format_signed, holm, list_compared

if TYPE_CHECKING:
    from .results_tables import TableRow


@dataclass(frozen=True)
class Difference:
    """The difference of one system to its baseline in one measure."""

    measure: Measure
    seeds: Sequence[float]
    """Of each training, to the mean of the baseline's."""
    interval: Interval | None = None
    """The 95 % interval of the mean (Welch); None if there are too few trainings."""
    p: float | None = None
    """By Welch's test; None if there are too few trainings."""
    corrected: float | None = None
    """p by Holm's method, corrected for all that are compared; None if it is not tested."""
    p_same: float | None = None
    """Corrected p of the test that both are the same; None without that test."""

    @property
    def mean(self) -> float:
        """The difference of the means."""
        return mean(self.seeds)

    @property
    def verdict(self) -> Verdict:
        """What the tests say."""
        return decide(self.mean, self.corrected, self.measure.higher_is_better, self.p_same)

    def format(self) -> str:
        """Return the difference, with its interval if there is one."""
        digits = self.measure.digits
        return self.interval.format(digits) if self.interval else format_signed(self.mean, digits)


def compare(
    measure: Measure, pairs: Sequence[tuple[Sequence[float], Sequence[float]]]
) -> list[Difference | None]:
    """Compare the numbers of systems with those of their baselines; all are corrected together.

    Returns:
        None where a side has no number.
    """
    p_values = [welch(*pair) for pair in pairs]
    return [
        make_difference(measure, *pair, corrected)
        for pair, corrected in zip(pairs, holm(p_values), strict=True)
    ]


def make_difference(
    measure: Measure,
    values: Sequence[float],
    baseline: Sequence[float],
    corrected: float | None = None,
    p_same: float | None = None,
) -> Difference | None:
    """Compare the numbers of two systems; None if one has none."""
    if not values or not baseline:
        return None
    seeds = [value - mean(baseline) for value in values]
    tests = welch_interval(values, baseline), welch(values, baseline)
    return Difference(measure, seeds, *tests, corrected, p_same)


def compare_rows(rows: Sequence[TableRow], measure: Measure) -> list[Difference | None]:
    """Compare the rows that have a baseline with it."""
    return compare(
        measure,
        [
            (measure.list_numbers(row.cells), measure.list_numbers(row.baseline.cells))
            for row in rows
            if row.baseline
        ],
    )


@dataclass(frozen=True)
class Comparison:
    """The difference of a system's BLEU to its baseline's."""

    name: str
    baseline: str
    difference: float
    p: float | None
    """Corrected for all comparisons made; None if it is unknown."""

    @property
    def verdict(self) -> Verdict:
        """What the test says."""
        return decide(self.difference, self.p, BLEU.higher_is_better)


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


def group_rows(
    rows: Sequence[TableRow], groups: Mapping[str, Sequence[str]]
) -> tuple[list[Measure], list[Group]]:
    """Return the measures of the table of differences, and the systems in groups.

    Args:
        rows: from `make_rows`; those without a baseline are left out.
        groups: systems by the name of their group; a system is in the first group that has it.
            The others come last.

    Raises:
        DataError: there is nothing to compare.
    """
    compared = [row for row in rows if row.baseline]
    differences = {m: compare_rows(compared, m) for m in list_compared()}
    differences = {m: column for m, column in differences.items() if any(column)}
    if not differences:
        raise DataError("nothing to draw: no system has a baseline with results")
    lines: dict[str, list[Line]] = {}
    group_names = [
        next((g for g, systems in groups.items() if row.system in systems), "") for row in compared
    ]
    for name in [*groups, ""]:
        for row, group, *line in zip(compared, group_names, *differences.values(), strict=True):
            if group == name and row.baseline:
                title = f"{name}, against {row.baseline.name}".removeprefix(", ")
                lines.setdefault(title, []).append(Line(row.name, line))
    return [*differences], [Group(*item) for item in lines.items()]


def compare_bleu(rows: Sequence[TableRow]) -> list[Comparison]:
    """Compare the BLEU of all rows that have a baseline, over seeds."""
    compared = [row for row in rows if row.baseline]
    return [
        Comparison(row.name, row.baseline.name, difference.mean, difference.corrected)
        for row, difference in zip(compared, compare_rows(compared, BLEU), strict=True)
        if row.baseline and difference
    ]


def format_difference(difference: Difference | None) -> str:
    """Return a difference with its interval, if there are numbers."""
    return NONE if difference is None else difference.format()
