"""Read from the cells of `study.exchange` how many pairs a parse is worth, as the plan says.

    python -m study.exchange_rate study/results/exchange/gpu.json

NLL of the plain system, `a + b N^−c`, says how NLL falls with the pairs N. A system's gain at N is
the shift g in log2 N after which the plain system has its NLL: it would need 2^g times the pairs.
Intervals are by a bootstrap over seeds and sentences together, which are those of all systems.
Results of the exploratory experiment, which needs no GPU, have no verdict: their differences are
listed with intervals over seeds.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_json
from syncattn_fairseq.base.text_tables import markdown_table
from syncattn_lab.evaluation.intervals import Interval
from syncattn_lab.evaluation.measures import LEVEL, NONE, format_signed

#: The plain system whose pairs are counted.
BASELINE = "rotary"
#: Decide at the largest size: the difference in NLL, and by how many nats both may differ and still
#: be the same.
RIGHT, OTHER, MARGIN = "right_tree", "other_tree", 0.01
#: Of the bootstrap.
SAMPLES, SEED = 2000, 1
#: Bounds of c.
_LEAST, _MOST = 1e-4, 20.0


@dataclass(frozen=True)
class Curve:
    """A learning curve, NLL by the number N of training pairs: ``a + b N^−c``."""

    a: float
    b: float
    c: float

    def nats(self, pairs: float) -> float:
        """Return the curve's NLL after training on ``pairs`` sentence pairs."""
        return self.a + self.b * pairs**-self.c

    def pairs(self, nats: float) -> float:
        """Return the number of training pairs needed for an NLL; infinity if it is too low."""
        if nats <= self.a:
            return float("inf")
        return float(((nats - self.a) / self.b) ** (-1 / self.c))

    def gain(self, pairs: float, nats: float) -> float:
        """Return log2 of how many times ``pairs`` the plain system needs for the NLL ``nats``."""
        return float(np.log2(self.pairs(nats) / pairs))


def fit_curve(nats: Mapping[int, float]) -> Curve:
    """Fit a learning curve through the mean NLL over seeds at three numbers of pairs.

    With all seeds at all sizes, effects of seeds cancel in the means: taking seeds as blocks gives
    the same curve.

    Raises:
        DataError: there are not three sizes, or NLL does not fall ever more slowly in log2 N.
    """
    if len(nats) != 3:
        raise DataError(f"{len(nats)} sizes; a curve needs three")
    (small, high), (middle, between), (large, low) = sorted(nats.items())
    if not high > between > low:
        raise DataError("NLL does not fall with more pairs; there is no curve")
    ratio = (high - between) / (between - low)

    def surplus(c: float) -> float:
        return float((small**-c - middle**-c) / (middle**-c - large**-c)) - ratio

    if surplus(_LEAST) > 0 or surplus(_MOST) < 0:
        raise DataError("NLL falls no slower with more pairs; there is no curve")
    c = float(brentq(surplus, _LEAST, _MOST))
    b = (high - low) / (small**-c - large**-c)
    return Curve(low - b * large**-c, b, c)


class Cells:
    """The trainings of the experiment, by system, number of training pairs, and seed.

    Args:
        rows: as `study.exchange` writes them.

    Raises:
        DataError: cells that are compared are of several devices, or the cells' texts differ.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        #: Whether the cells were trained without a GPU, where each seed may have a machine.
        self.exploratory = all(row["device"].startswith("CPU, ") for row in rows)
        blocks = {(self.exploratory and row["seed"], row["device"]) for row in rows}
        if len(blocks) != len({block for block, _ in blocks}):
            raise DataError("cells of several devices; GPU and CPU are never in one contrast")
        if len({tuple(row["subwords"]) for row in rows}) != 1:
            raise DataError("cells of different test texts")
        self.subwords = np.array(rows[0]["subwords"], float)
        self._sums: dict[tuple[str, int], dict[int, np.ndarray]] = {}
        for row in rows:
            cells = self._sums.setdefault((row["system"], row["size"]), {})
            cells[row["seed"]] = np.array(row["nats"], float)
        self.seeds = sorted(set.union(*map(set, self._sums.values())))
        self.sizes = sorted({size for _, size in self._sums})

    @property
    def systems(self) -> list[str]:
        """The names of the systems, in alphabetical order."""
        return sorted({system for system, _ in self._sums})

    def has(self, system: str, size: int) -> bool:
        """Tell whether all seeds of a system were trained on a number of pairs."""
        return self._sums.get((system, size), {}).keys() == {*self.seeds}

    def by_seed(self, system: str, size: int) -> np.ndarray:
        """Return a system's NLL in nats per subword, by seed, after training on ``size`` pairs."""
        found = self._stack(system, size)
        return np.asarray(found.sum(1) / self.subwords.sum())

    def _stack(self, system: str, size: int) -> np.ndarray:
        if not self.has(system, size):
            raise DataError(f"{system}, {size} pairs: not all seeds are there")
        return np.stack([self._sums[system, size][seed] for seed in self.seeds])

    def resample(self, system: str, size: int, seeds: np.ndarray, weights: np.ndarray) -> float:
        """Return a system's mean NLL over resampled seeds and resampled sentences.

        Args:
            system: the name of the system.
            size: the number of training pairs.
            seeds: the indices of the drawn seeds.
            weights: how often each sentence was drawn.
        """
        found = self._stack(system, size)[seeds] @ weights
        return float(found.mean() / (self.subwords @ weights))


def measure_gain(cells: Cells, system: str, size: int) -> Interval:
    """Return log2 of how many times the pairs a system is worth at a size, with its interval.

    Of n seeds, n − 1 are drawn, so that the mean varies as it should. A sample in which the plain
    system never has the system's NLL counts as infinite; where there is no curve, it does not
    count.
    """
    generator = np.random.default_rng(SEED)

    def compute(mean_of: Callable[[str, int], float]) -> float:
        curve = fit_curve({each: mean_of(BASELINE, each) for each in cells.sizes})
        return curve.gain(size, mean_of(system, size))

    found = compute(lambda name, each: float(cells.by_seed(name, each).mean()))
    samples = []
    sentences, count = len(cells.subwords), len(cells.seeds)
    for _ in range(SAMPLES):
        drawn = generator.integers(sentences, size=sentences)
        weights = np.bincount(drawn, minlength=sentences).astype(float)
        seeds = generator.integers(count, size=max(1, count - 1))

        def mean_of(
            name: str, each: int, seeds: np.ndarray = seeds, weights: np.ndarray = weights
        ) -> float:
            return cells.resample(name, each, seeds, weights)

        try:
            samples.append(compute(mean_of))
        except DataError:
            continue
    low, high = np.quantile(samples, [0.025, 0.975], method="nearest")
    return Interval(found, float(low), float(high))


@dataclass(frozen=True)
class Decision:
    """The statistics by which the plan decides between right and other trees, at the largest size.

    Attributes:
        interval: right − other in nats, paired over seeds, 95 %.
        p: of Student's paired test.
        p_same: the larger p of two one-sided paired tests that both differ by less than `MARGIN`.
        slope: of that difference over log2 N, with its interval over seeds; None until all sizes
            are there, or if the first test shows nothing.
        p_slope: of the test that it is 0.
    """

    interval: Interval
    p: float
    p_same: float
    slope: Interval | None = None
    p_slope: float | None = None

    @property
    def verdict(self) -> str:
        """The conclusion that the plan's rule draws from these statistics."""
        if self.p < LEVEL:
            word = "better" if self.interval.difference < 0 else "worse"
            if self.slope is None or self.p_slope is None:
                return f"the right trees are {word}"
            if self.p_slope >= LEVEL:
                return f"the right trees are {word}; whether that changes with N is not known"
            shrinks = (self.slope.difference > 0) == (self.interval.difference < 0)
            return f"the right trees are {word}, by {'less' if shrinks else 'more'} with more pairs"
        return "the same" if self.p_same < LEVEL else "not known"


def decide(cells: Cells) -> Decision:
    """Compute the statistics that the plan's rule needs at the largest size.

    Raises:
        DataError: not all seeds of both are there at the largest size.
    """
    largest = cells.sizes[-1]
    difference = cells.by_seed(RIGHT, largest) - cells.by_seed(OTHER, largest)
    interval, p = _test(difference)
    sides = ((difference + MARGIN, "greater"), (difference - MARGIN, "less"))
    same = max(float(stats.ttest_1samp(x, 0, alternative=side).pvalue) for x, side in sides)
    complete = all(cells.has(name, size) for name in (RIGHT, OTHER) for size in cells.sizes)
    if p >= LEVEL or not complete or len(cells.sizes) < 2:
        return Decision(interval, p, same)
    each = [cells.by_seed(RIGHT, size) - cells.by_seed(OTHER, size) for size in cells.sizes]
    slopes = np.polyfit(np.log2(cells.sizes), np.array(each), 1)[0]
    return Decision(interval, p, same, *_test(slopes))


def _test(values: np.ndarray) -> tuple[Interval, float]:
    """Return the mean with its interval, and the p of Student's test against 0."""
    test = stats.ttest_1samp(values, 0)
    ends = test.confidence_interval()
    return Interval(float(values.mean()), float(ends.low), float(ends.high)), float(test.pvalue)


def make_table(cells: Cells) -> str:
    """Return a table of the gains of all systems that were trained at all sizes."""
    table = [["system", *(f"gain at {size:,} pairs" for size in cells.sizes)]]
    for system in cells.systems:
        pairs = [(name, size) for name in (system, BASELINE) for size in cells.sizes]
        if system != BASELINE and all(cells.has(name, size) for name, size in pairs):
            gains = [measure_gain(cells, system, size) for size in cells.sizes]
            table.append([system, *(gain.format(2) for gain in gains)])
    return markdown_table(table)


def tabulate_differences(cells: Cells) -> str:
    """Return a table of the differences between systems, paired over seeds.

    Columns are nats, with their interval and by seed, and what the first system's lead is worth in
    pairs (`measure_worth`). A pair of systems of which a seed is missing is left out. One seed
    alone has no interval.
    """
    table = [["pairs", "systems", "nats", "nats by seed", "worth in pairs, %"]]
    for size in cells.sizes:
        complete = [name for name in cells.systems if cells.has(name, size)]
        steepness = measure_steepness(cells, size)
        for second, first in combinations(complete, 2):
            values = cells.by_seed(first, size) - cells.by_seed(second, size)
            each = ", ".join(format_signed(value, 3) for value in values)
            worth = NONE if steepness is None else _show(measure_worth(values, steepness), 1)
            table.append([f"{size:,}", f"{first} − {second}", _show(_average(values), 3), each])
            table[-1].append(worth)
    return markdown_table(table)


def measure_steepness(cells: Cells, size: int) -> np.ndarray | None:
    """Return by how many nats the plain system's NLL falls when its pairs are doubled, by seed.

    It is measured between the next smaller number of pairs and ``size``; None where the plain
    system lacks trainings at either.
    """
    smaller = [each for each in cells.sizes if each < size]
    if not smaller or not (cells.has(BASELINE, smaller[-1]) and cells.has(BASELINE, size)):
        return None
    fall = cells.by_seed(BASELINE, smaller[-1]) - cells.by_seed(BASELINE, size)
    return np.asarray(fall / np.log2(size / smaller[-1]))


def measure_worth(differences: np.ndarray, steepness: np.ndarray) -> Interval:
    """Return how many per cent more pairs a lead is worth, with its 95 % interval over seeds.

    Each seed's lead divided by its steepness is log2 of the factor; Student's t is of these.

    Args:
        differences: of two systems, in nats, by seed; negative where the first one leads.
        steepness: what `measure_steepness` returns.
    """
    found = _average(-differences / steepness)
    mean, low, high = (float(100 * (2**x - 1)) for x in (found.difference, found.low, found.high))
    return Interval(mean, low, high)


def _average(values: np.ndarray) -> Interval:
    """Return the mean with its interval over seeds, which of one seed is infinite."""
    if len(values) > 1:
        return _test(values)[0]
    return Interval(float(values[0]), -math.inf, math.inf)


def _show(interval: Interval, digits: int) -> str:
    """Write an interval, or the mean alone where there is one seed."""
    if math.isinf(interval.high):
        return format_signed(interval.difference, digits)
    return interval.format(digits)


def _keep_complete_seeds(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out, at each size, the seeds that lack trainings other seeds have.

    Their queue is not done yet.
    """
    counts = Counter((row["size"], row["seed"]) for row in rows)
    most = {size: max(n for (s, _), n in counts.items() if s == size) for size, _ in counts}
    return [row for row in rows if counts[row["size"], row["seed"]] == most[row["size"]]]


def main(words: Sequence[str] | None = None) -> None:
    """Print the plan's decision and the systems' gains.

    ``words`` are the command's arguments; None: those of the process.
    """
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("results", type=Path)
    rows = read_json(made.parse_args(words).results)
    cells = Cells(rows)
    if cells.exploratory:
        cells = Cells(_keep_complete_seeds(rows))
        seeds = ", ".join(map(str, cells.seeds))
        print(f"{tabulate_differences(cells)}\n\n- exploratory; seeds: {seeds}")
        for smaller, size in pairwise(cells.sizes):
            if (steepness := measure_steepness(cells, size)) is not None:
                nats = _show(_average(steepness), 3)
                print(f"- {BASELINE}: {nats} nats per doubling of {smaller:,} pairs to {size:,}")
        return
    decision = decide(cells)
    print(f"{RIGHT} − {OTHER}, {cells.sizes[-1]:,} pairs: {decision.interval.format(3)} nats")
    print(f"p {decision.p:.3f}, p same {decision.p_same:.3f}: {decision.verdict}")
    if len(cells.sizes) == 3:
        print(f"\nin log2 pairs of {BASELINE}:\n\n{make_table(cells)}")


if __name__ == "__main__":
    main()
