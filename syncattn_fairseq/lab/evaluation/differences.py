"""How far systems are from their baselines, over several trainings of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from ...base.errors import DataError
from .intervals import welch_interval
from .results_tables import Number, TableRow, compute_p, pair_values, score_of
from .significance import LEVEL


@dataclass(frozen=True)
class Difference:
    """The difference of one system to its baseline in one measure."""

    seeds: Sequence[float]
    """Of each training, to the mean of the baseline's."""
    mean: float
    interval: tuple[float, float] | None
    """The 95 % interval of the mean (Welch); None if there are too few trainings."""
    p: float | None = None
    """Corrected for all contrasts of a plan; None if it is of no plan."""

    @property
    def is_shown(self) -> bool:
        """Whether it is unlikely to be chance: by its p if it has one, or else by its interval."""
        if self.p is not None:
            return self.p < LEVEL
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]

    @staticmethod
    def of(
        values: Sequence[float], baseline: Sequence[float], p: float | None = None
    ) -> Difference | None:
        """Compare the numbers of two systems; None if one has none."""
        if not values or not baseline:
            return None
        other = mean(baseline)
        found = welch_interval(values, baseline)
        interval = (found.low, found.high) if found else None
        return Difference([value - other for value in values], mean(values) - other, interval, p)


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


def _valid_loss(cell: Mapping[str, Mapping[str, float]]) -> float | None:
    return cell["valid"].get("loss")


_MEASURES: Sequence[tuple[Measure, Number]] = (
    (Measure("BLEU"), score_of("BLEU")),
    (Measure("validation loss", higher_is_better=False), _valid_loss),
)


def group_rows(
    rows: Sequence[TableRow], groups: Mapping[str, Sequence[str]]
) -> tuple[list[Measure], list[Group]]:
    """Return the measures that there are, and the systems in groups.

    Args:
        rows: from `make_rows`; those without a baseline are left out.
        groups: systems by the name of their group; a system is in the first group that has it.
            The others come last.

    Raises:
        DataError: there is nothing to compare.
    """
    found: dict[tuple[str, str], list[Line]] = {}
    names = [*groups, ""]
    compared = [row for row in rows if row.baseline]
    for name in names:
        for row in compared:
            if name == next((g for g, systems in groups.items() if row.system in systems), ""):
                assert row.baseline is not None
                line = Line(row.name, [_difference(row, number) for _, number in _MEASURES])
                found.setdefault((name, row.baseline.name), []).append(line)
    made = [
        Group(f"{name}, against {other}" if name else f"against {other}", lines)
        for (name, other), lines in found.items()
    ]
    used = [
        n for n in range(len(_MEASURES)) if any(x.differences[n] for g in made for x in g.lines)
    ]
    if not used:
        raise DataError("nothing to draw: no system has a baseline with results")
    return [_MEASURES[n][0] for n in used], [
        Group(g.title, [Line(x.name, [x.differences[n] for n in used]) for x in g.lines])
        for g in made
    ]


def compare_rows(rows: Sequence[TableRow]) -> list[Comparison]:
    """Compare the BLEU of all rows that have a baseline, over seeds, corrected by Holm's method."""
    bleu = score_of("BLEU")
    compared = [row for row in rows if row.baseline]
    return [
        Comparison(row.name, row.baseline.name, difference.mean, corrected)
        for row, (_, corrected) in zip(compared, compute_p(compared, bleu), strict=True)
        if row.baseline and (difference := _difference(row, bleu))
    ]


def _difference(row: TableRow, number: Number) -> Difference | None:
    return Difference.of(*pair_values(row, number))
