"""How far systems are from their baselines, over several trainings of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev
from typing import TYPE_CHECKING

from syncattn_fairseq.base.errors import DataError

from .intervals import Blocks, Interval, fit_blocks, welch, welch_interval
from .measures import BLEU, NONE, Measure, Verdict, decide, format_signed, holm, list_compared

if TYPE_CHECKING:
    from .results_tables import TableRow

#: How many times the median deviation is too much.
_UNSTEADY = 5
#: What the column says.
WITHIN = (
    "systems are compared within seeds, which share first weights and batches; all systems here "
    "whose seeds are as steady tell the deviation"
)
BLOCKS = f"seeds as blocks: the 95 % interval if {WITHIN}. Welch's test decides"


@dataclass(frozen=True)
class Difference:
    """The difference of one system to its baseline in one measure."""

    measure: Measure
    seeds: Sequence[float]
    """Of each training, to the mean of the baseline's."""
    interval: Interval | None = None
    """The 95 % interval of the mean (Welch); None if there are too few trainings."""
    corrected: float | None = None
    """p by Holm's method, corrected for all that are compared; None if it is not tested."""
    p_same: float | None = None
    """Corrected p of the test that both are the same; None without that test."""
    blocks: Blocks | None = None
    """Of all systems that have the seeds that both have; None if there are fewer than two."""
    within: float = 0.0
    """The difference of the means over the seeds that both have."""
    by_blocks: bool = False
    """Whether it is tested within seeds, so that their interval is the only one."""

    @property
    def mean(self) -> float:
        """The difference of the means."""
        return mean(self.seeds)

    @property
    def verdict(self) -> Verdict:
        """What the tests say."""
        return decide(self.mean, self.corrected, self.measure.higher_is_better, self.p_same)

    @property
    def block_interval(self) -> Interval | None:
        """The 95 % interval with seeds as blocks."""
        return self.blocks.interval(self.within) if self.blocks and not self.by_blocks else None

    def format(self) -> str:
        """Return the difference, with its interval if there is one."""
        digits = self.measure.digits
        return self.interval.format(digits) if self.interval else format_signed(self.mean, digits)


def make_difference(
    measure: Measure,
    ours: Mapping[int, float],
    theirs: Mapping[int, float],
    every: Iterable[Mapping[int, float]] = (),
    corrected: float | None = None,
    p_same: float | None = None,
    by_blocks: bool = False,
) -> Difference | None:
    """Compare the numbers by seed of a system and its baseline; None if one has none.

    ``every`` has those of all systems whose deviation within seeds is estimated together.
    """
    if not ours or not theirs:
        return None
    values, baseline = [*ours.values()], [*theirs.values()]
    blocks, within = fit_within(ours, theirs, every)
    if by_blocks:
        interval = blocks.interval(within) if blocks else None
    else:
        interval = welch_interval(values, baseline)
    seeds = [value - mean(baseline) for value in values]
    return Difference(measure, seeds, interval, corrected, p_same, blocks, within, by_blocks)


def fit_within(
    ours: Mapping[int, float], theirs: Mapping[int, float], every: Iterable[Mapping[int, float]]
) -> tuple[Blocks | None, float]:
    """Compare a system and its baseline within the seeds that both have; as `make_difference`.

    Returns the fit of all systems, None with fewer than two seeds, and the difference.
    """
    shared = sorted(ours.keys() & theirs.keys())
    alike = [[x[seed] for seed in shared] for x in every if x.keys() >= {*shared}]
    both = [[x[seed] for seed in shared] for x in (ours, theirs)]
    # A system whose scores vary far more over seeds than most, as if some had failed, is left out.
    deviations = [stdev(one) if len(one) > 1 else 0.0 for one in alike]
    limit = _UNSTEADY * median(deviations) if deviations else 0.0
    steady = [one for one, own in zip(alike, deviations, strict=True) if own <= limit]
    blocks = fit_blocks(steady if all(one in steady for one in both) else both)
    return blocks, mean([ours[seed] - theirs[seed] for seed in shared] or [0.0])


def compare_rows(rows: Sequence[TableRow], measure: Measure) -> list[Difference | None]:
    """Compare the rows that have a baseline with it; all are corrected together."""
    known = {id(one): one for row in rows for one in (row, row.baseline) if one}
    numbers = {key: measure.by_seed(row.cells) for key, row in known.items()}
    pairs = [(numbers[id(row)], numbers[id(row.baseline)]) for row in rows if row.baseline]
    p_values = [welch([*ours.values()], [*theirs.values()]) for ours, theirs in pairs]
    return [
        make_difference(measure, *pair, numbers.values(), corrected)
        for pair, corrected in zip(pairs, holm(p_values), strict=True)
    ]


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
    rows: Sequence[TableRow],
    groups: Mapping[str, Sequence[str]],
    say: Callable[[str], str] = str,
) -> tuple[list[Measure], list[Group]]:
    """Return the measures of the table of differences, and the systems in groups.

    Args:
        rows: from `make_rows`; those without a baseline are left out.
        groups: systems by the name of their group. A system is in the first that has it, or last.
        say: returns what to call a system, or ``@GROUP``.

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
                group_said = say(f"@{name}").removeprefix("@")
                title = f"{group_said}, against {say(row.baseline.name)}".removeprefix(", ")
                lines.setdefault(title, []).append(Line(say(row.name), line))
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


def format_blocks(difference: Difference | None) -> str:
    """Return the interval with seeds as blocks, if there is one."""
    interval = difference and difference.block_interval
    return interval.format_ends(difference.measure.digits) if difference and interval else NONE


def describe_blocks(differences: Iterable[Difference | None], unit: str = "") -> list[str]:
    """Say for each set of seeds what they explain, and which differences they show."""
    known = dict.fromkeys((d.measure, d.blocks) for d in differences if d)
    return [
        f"{measure.name}{unit}, {blocks.seeds} seeds: deviation within seeds "
        f"{blocks.deviation:.2g} ({blocks.freedom} d.f.); seeds explain {100 * blocks.share:.0f} % "
        f"of the variance; {blocks.detectable():.2g} is shown with 80 % power, before correction"
        for measure, blocks in known
        if blocks
    ]
