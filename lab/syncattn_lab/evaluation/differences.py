"""The difference of a contrast's systems over seeds: interval, tests and verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, median, stdev

from .contrast import Cells, Contrast
from .intervals import Blocks, Interval, equivalence, fit_blocks, welch, welch_interval
from .measures import NLL, NLL_PER_WORD, NONE, Measure, Verdict, decide, format_signed, holm

#: How many times the median deviation over seeds is too much.
_UNSTEADY = 5


@dataclass(frozen=True)
class Difference:
    """The difference between two systems in a single measure, with its tests.

    Attributes:
        contrast: the systems.
        measure: what is compared.
        ours: the system's number of each seed that has one.
        theirs: the baseline's.
        interval: the 95 % interval of the difference of means, by the contrast's test; None if it
            is not complete or has fewer than two seeds.
        p: of the test that both are equal, corrected for the family by Holm's method; None if it is
            not tested.
        p_same: of the test that both differ by less than the margin, corrected for all contrasts
            that have this test; None if it is not tested.
        blocks: the fit of systems and seeds as blocks, over the seeds that both have.
    """

    contrast: Contrast
    measure: Measure
    ours: Mapping[int, float]
    theirs: Mapping[int, float]
    interval: Interval | None = None
    p: float | None = None
    p_same: float | None = None
    blocks: Blocks | None = None

    @property
    def is_begun(self) -> bool:
        """Whether the system and its baseline each have a value for at least one seed."""
        return bool(self.ours and self.theirs)

    @property
    def is_complete(self) -> bool:
        """Whether system and baseline have values for all planned seeds, or any if unplanned."""
        if self.contrast.seeds is None:
            return self.is_begun
        return len(self.ours) == len(self.theirs) == len(self.contrast.seeds)

    @property
    def is_counted(self) -> bool:
        """Whether the contrast is one of the tests whose p-values are corrected together."""
        return self.contrast.tested and (self.contrast.is_planned or self.p is not None)

    @property
    def samples(self) -> tuple[list[float], list[float]]:
        """The values of the system and those of the baseline, one for each training."""
        return [*self.ours.values()], [*self.theirs.values()]

    @property
    def shared(self) -> list[int]:
        """The seeds for which both the system and the baseline have a value, sorted."""
        return sorted(self.ours.keys() & self.theirs.keys())

    @property
    def seeds(self) -> list[float]:
        """The difference of each training of the system from the mean of the baseline's."""
        baseline = mean(self.theirs.values())
        return [value - baseline for value in self.ours.values()]

    @property
    def mean(self) -> float:
        """The mean of the system minus the mean of the baseline."""
        return mean(self.seeds)

    @property
    def within(self) -> float:
        """The mean difference between system and baseline over the seeds that both have, or 0."""
        return mean([self.ours[seed] - self.theirs[seed] for seed in self.shared] or [0.0])

    @property
    def block_interval(self) -> Interval | None:
        """The 95 % interval of system minus baseline, which compares trainings of the same seed.

        Each seed is a block. None if it is unknown, or if `interval` already takes seeds as blocks.
        """
        if self.blocks is None or self.contrast.by_blocks:
            return None
        return self.blocks.interval(self.within)

    @property
    def verdict(self) -> Verdict:
        """The verdict of the tests on the system (better, worse, the same or not known)."""
        return decide(self.mean, self.p, self.measure.higher_is_better, self.p_same)

    @property
    def conclusion(self) -> str:
        """The verdict on the system, or the reason why there is none.

        Only a contrast that is tested and complete has a verdict.
        """
        if not self.is_complete:
            return "not complete"
        return self.verdict if self.contrast.tested else "estimate"

    @property
    def side(self) -> int:
        """1 if the whole interval favours the system, -1 if it favours the baseline, else 0."""
        if self.interval is None:
            return 0
        sign = (self.interval.low > 0) - (self.interval.high < 0)
        return sign if self.measure.higher_is_better else -sign

    def format(self) -> str:
        """Format the difference with its interval, if known; a dash for an incomplete contrast."""
        if not self.is_complete:
            return NONE
        digits = self.measure.digits
        return self.interval.format(digits) if self.interval else format_signed(self.mean, digits)

    def format_blocks(self) -> str:
        """Format the ends of the interval with seeds as blocks; a dash if there is none."""
        interval = self.block_interval
        return interval.format_ends(self.measure.digits) if interval else NONE


def compare(contrasts: Sequence[Contrast], cells: Cells, measure: Measure) -> list[Difference]:
    """Compute the difference of each contrast in one measure, with its interval and tests.

    The tested ones are a family: p is corrected for all of them. A planned contrast without p
    counts as if p were 1, so that others do not profit from what is missing.

    Args:
        contrasts: all that are compared together.
        cells: the results of their systems.
        measure: what is compared; NLL is that of a word where a contrast says so.

    Raises:
        DataError: results lack what NLL per word is computed with.
    """
    measured = [_measure(contrast, cells, measure) for contrast in contrasts]
    fitted = [_estimate(one, measured) if one.is_complete else one for one in measured]
    family = [one for one in fitted if one.contrast.tested]
    p = _correct(family, [_test(one) for one in family])
    alike = [one for one in fitted if one.contrast.margin and measure.unit == NLL.unit]
    p_same = _correct(alike, [_test(one, one.contrast.margin) for one in alike])
    return [replace(one, p=p.get(one.contrast), p_same=p_same.get(one.contrast)) for one in fitted]


def _measure(contrast: Contrast, cells: Cells, measure: Measure) -> Difference:
    if contrast.per_word and measure is NLL:
        measure = NLL_PER_WORD
    ours, theirs = (measure.by_seed(each.values()) for each in contrast.select(cells))
    return Difference(contrast, measure, ours, theirs)


def _estimate(one: Difference, every: Iterable[Difference]) -> Difference:
    """Add the fit of blocks and the interval of the contrast's test to a complete difference."""
    blocks = _fit_blocks(one, every)
    within = blocks.interval(one.within) if blocks else None
    interval = within if one.contrast.by_blocks else welch_interval(*one.samples)
    return replace(one, blocks=blocks, interval=interval)


def _fit_blocks(one: Difference, every: Iterable[Difference]) -> Blocks | None:
    """Fit all systems with the same seeds; None with fewer than two seeds.

    A system that varies as if some of its trainings had failed is left out.
    """
    if len(one.shared) < 2:
        return None
    known: dict[str, Mapping[int, float]] = {}
    for other in every:
        if other.contrast.is_trained_like(one.contrast):
            known |= {other.contrast.system: other.ours, other.contrast.baseline: other.theirs}
    complete = [numbers for numbers in known.values() if numbers.keys() >= {*one.shared}]
    systems = [_list_numbers(numbers, one.shared) for numbers in complete]
    both = [_list_numbers(numbers, one.shared) for numbers in (one.ours, one.theirs)]
    return fit_steady_blocks(both, systems)


def fit_steady_blocks(
    compared: Sequence[Sequence[float]], systems: Sequence[Sequence[float]]
) -> Blocks | None:
    """Fit the effects of systems and seeds, without systems that vary far more than most.

    Args:
        compared: the numbers of the systems that are compared, over the same seeds. If one of them
            varies so much, only these are fitted.
        systems: the numbers of all systems, with those that are compared.
    """
    limit = _UNSTEADY * median(map(stdev, systems))
    steady = [numbers for numbers in systems if stdev(numbers) <= limit]
    return fit_blocks(steady if all(numbers in steady for numbers in compared) else compared)


def _list_numbers(numbers: Mapping[int, float], seeds: Iterable[int]) -> list[float]:
    return [numbers[seed] for seed in seeds]


def _test(one: Difference, margin: float = 0.0) -> float | None:
    """Return the p of the test for a difference, or, with a margin, of the test for equivalence.

    None if there are too few seeds, or if nothing varies.
    """
    if not one.is_complete:
        return None
    if one.contrast.by_blocks:
        return one.blocks.p(one.within, margin) if one.blocks else None
    return equivalence(*one.samples, margin) if margin else welch(*one.samples)


def _correct(
    family: Sequence[Difference], p_values: Sequence[float | None]
) -> dict[Contrast, float]:
    """Return Holm's corrected p of each tested contrast in a family."""
    counted = [
        1.0 if p is None and one.contrast.is_planned else p
        for one, p in zip(family, p_values, strict=True)
    ]
    return {
        one.contrast: corrected
        for one, p, corrected in zip(family, p_values, holm(counted), strict=True)
        if p is not None and corrected is not None
    }
