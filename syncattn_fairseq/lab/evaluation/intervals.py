"""Compare the scores of two systems' seeds: differences, intervals and tests."""

import math
import statistics
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.errors import DataError
from .measures import format_signed
from .significance import compute_bleu

_SAMPLES, _SEED = 1000, 12345


@dataclass(frozen=True)
class Interval:
    """A difference of means, and between which values it lies."""

    difference: float
    low: float
    high: float

    def format(self, digits: int) -> str:
        """Return both."""
        return f"{format_signed(self.difference, digits)} {self.format_ends(digits)}"

    def format_ends(self, digits: int) -> str:
        """Return between which values the difference lies."""
        return f"[{format_signed(self.low, digits)}, {format_signed(self.high, digits)}]"


def welch_interval(
    values: Sequence[float], baseline: Sequence[float], confidence: float = 0.95
) -> Interval | None:
    """Return the difference of two means with its interval, which fits `welch`'s test."""
    test = _welch(values, baseline)
    if test is None:
        return None
    difference = statistics.fmean(values) - statistics.fmean(baseline)
    return Interval(difference, *map(float, test.confidence_interval(confidence)))


def welch(values: Sequence[float], baseline: Sequence[float]) -> float | None:
    """Return the p of Welch's t-test of whether two samples of seeds have different means.

    None if a sample has fewer than two values, or if nothing varies.
    """
    test = _welch(values, baseline)
    return None if test is None else float(test.pvalue)


def equivalence(values: Sequence[float], baseline: Sequence[float], margin: float) -> float | None:
    """Return the larger p of two one-sided Welch tests that means differ by less than a margin.

    A small p says that they are the same for all practical purposes; that a test finds no
    difference does not. At .05, it asks whether the 90 % interval lies within the margin, which is
    above 0. None as for `welch`.
    """
    sides = ((margin, "greater"), (-margin, "less"))
    tests = [_welch([x + shift for x in values], baseline, side) for shift, side in sides]
    return None if None in tests else max(float(test.pvalue) for test in tests)


def _welch(values: Sequence[float], baseline: Sequence[float], side: str = "two-sided") -> Any:
    if min(len(values), len(baseline)) < 2 or all(len({*x}) == 1 for x in (values, baseline)):
        return None
    from scipy.stats import ttest_ind  # takes a second to import

    with warnings.catch_warnings():  # of values that hardly vary
        warnings.simplefilter("ignore", RuntimeWarning)
        return ttest_ind(values, baseline, equal_var=False, alternative=side)


@dataclass(frozen=True)
class Blocks:
    """Scores of several systems with the same seeds: score = system + seed + rest.

    Trainings of one seed share their first weights and batches, so that seeds raise and lower
    systems together. A difference within seeds varies by the rest alone. It is estimated from all
    systems, as if it were the same for each.

    Attributes:
        deviation: the rest's standard deviation.
        freedom: its degrees of freedom, (systems - 1) (seeds - 1).
        seeds: how many there are.
        share: of a system's variance over seeds, the share that seeds explain (ICC), from 0 to 1.
    """

    deviation: float
    freedom: int
    seeds: int
    share: float

    def interval(self, difference: float, confidence: float = 0.95) -> Interval:
        """Return the interval of the difference of two systems' means."""
        from scipy.stats import t

        half = float(t.ppf((1 + confidence) / 2, self.freedom)) * self._error()
        return Interval(difference, difference - half, difference + half)

    def detectable(self, power: float = 0.8, level: float = 0.05) -> float:
        """Return the smallest true difference of which a test at a level has a power.

        The smallest of n corrected p is tested at level .05 / n.
        """
        from scipy.optimize import brentq
        from scipy.stats import nct, t

        limit = float(t.isf(level / 2, self.freedom))

        def missing(errors: float) -> float:
            return power - float(nct.sf(limit, self.freedom, errors))

        return float(brentq(missing, 0, limit + 10)) * self._error()

    def _error(self) -> float:
        return self.deviation * math.sqrt(2 / self.seeds)


def fit_blocks(scores: Sequence[Sequence[float]]) -> Blocks | None:
    """Fit systems and seeds to the scores of each system, with the same seeds in the same order.

    None if there are fewer than two systems or seeds, or if nothing is left that varies.
    """
    table = np.array(scores, float)
    if table.ndim < 2 or min(table.shape) < 2:
        return None
    systems, seeds = table.shape
    means = table.mean(0) - table.mean()
    rest = table - table.mean(1, keepdims=True) - means
    freedom = (systems - 1) * (seeds - 1)
    variance = float((rest**2).sum()) / freedom
    if math.isclose(variance, 0, abs_tol=1e-18):
        return None
    ratio = systems * float((means**2).sum()) / (seeds - 1) / variance
    share = max(0.0, (ratio - 1) / (ratio + systems - 1))
    return Blocks(math.sqrt(variance), freedom, seeds, share)


def bootstrap_seeds(
    system: Sequence[np.ndarray],
    baseline: Sequence[np.ndarray],
    score: Callable[[np.ndarray], np.ndarray] = compute_bleu,
) -> Interval:
    """Bootstrap the difference of mean scores over seeds and sentences together.

    Each sample draws sentences, the same for all outputs, and of each system seeds. The 95 %
    interval tells what other seeds and other sentences may give; that of one system's seeds alone,
    or of the sentences alone, is too narrow. Of n seeds, n − 1 are drawn: with n, the variance of
    the mean would be (n − 1) / n of what it is.

    Quantiles of these samples would be too narrow, too: they ignore that few seeds know their own
    variance badly. So the half width is the samples' standard deviation times Student's quantile.
    Its degrees of freedom are Satterthwaite's, where the part of the variance that seeds explain
    has Welch's, and that of the sentences has so many that they do not matter.

    A single seed is always drawn, so that only sentences vary. Then, and where no seed differs,
    the interval is that of the samples' quantiles.

    Args:
        system: what is counted in each sentence, ``(sentences, counts)``, with each seed.
        baseline: the same for the baseline, perhaps with other seeds.
        score: the scores of sums over sentences, ``(..., counts)``.

    Raises:
        DataError: the outputs have different numbers of sentences.
    """
    sentences = {len(counts) for counts in (*system, *baseline)}
    if len(sentences) > 1:
        sizes = " and ".join(map(str, sorted(sentences)))
        raise DataError(f"outputs of different texts, with {sizes} sentences")
    [size] = sentences
    pair = [np.stack([*outputs]).astype(float) for outputs in (system, baseline)]
    generator = np.random.default_rng(_SEED)

    def draw() -> float:
        weights = np.bincount(generator.choice(size, size), minlength=size).astype(float)
        drawn = [generator.choice(len(outputs), max(1, len(outputs) - 1)) for outputs in pair]
        means = [score(weights @ o)[seeds].mean() for o, seeds in zip(pair, drawn, strict=True)]
        return float(means[0] - means[1])

    scores = [score(outputs.sum(1)) for outputs in pair]
    difference = float(scores[0].mean() - scores[1].mean())
    samples = np.array([draw() for _ in range(_SAMPLES)])
    test = _welch(scores[0].tolist(), scores[1].tolist())
    if test is None:
        return Interval(difference, *map(float, np.quantile(samples, [0.025, 0.975])))
    from scipy.stats import sem, t

    error = float(samples.std(ddof=1))
    freedom = float(test.df) * max(1.0, error / math.hypot(*map(sem, scores))) ** 4
    half = error * float(t.ppf(0.975, freedom))
    return Interval(difference, difference - half, difference + half)
