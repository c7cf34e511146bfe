"""Compare the scores of two systems' seeds: differences, intervals and tests."""

import math
import statistics
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .measures import format_signed
from .significance import SAMPLES, SEED, check_same_text, compute_bleu


@dataclass(frozen=True)
class Interval:
    """A difference of means and the ends of its confidence interval."""

    difference: float
    low: float
    high: float

    def format(self, digits: int) -> str:
        """Format the difference, followed by the ends of its interval."""
        return f"{format_signed(self.difference, digits)} {self.format_ends(digits)}"

    def scale(self, factor: float) -> "Interval":
        """Return the difference and its interval in another unit, such as per cent.

        Args:
            factor: what they are multiplied by, above 0.
        """
        return Interval(factor * self.difference, factor * self.low, factor * self.high)

    def format_ends(self, digits: int) -> str:
        """Format the ends of the interval in square brackets."""
        return f"[{format_signed(self.low, digits)}, {format_signed(self.high, digits)}]"


def welch_interval(
    values: Sequence[float], baseline: Sequence[float], confidence: float = 0.95
) -> Interval | None:
    """Return the difference of two means, with the confidence interval of Welch's t-test."""
    test = _welch(values, baseline)
    if test is None:
        return None
    difference = statistics.fmean(values) - statistics.fmean(baseline)
    return Interval(difference, *map(float, test.confidence_interval(confidence)))


def welch(values: Sequence[float], baseline: Sequence[float]) -> float | None:
    """Return the p of Welch's t-test of equal means, on two samples with one value per seed.

    None if a sample has fewer than two values, or if nothing varies.
    """
    test = _welch(values, baseline)
    return None if test is None else float(test.pvalue)


def equivalence(values: Sequence[float], baseline: Sequence[float], margin: float) -> float | None:
    """Return the p of the test that two means differ by less than a margin (equivalence).

    It is the larger p of two one-sided Welch tests.

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
    """A fit to scores of several systems with the same seeds: score = system + seed + residual.

    Trainings of one seed share their first weights and batches, so that seeds raise and lower
    systems together. A difference within seeds varies by the rest alone. It is estimated from all
    systems, as if it were the same for each.
    """

    deviation: float
    """The standard deviation of the residual."""
    freedom: int
    """The residual's degrees of freedom, (systems - 1) (seeds - 1)."""
    seeds: int
    share: float
    """The share of a system's variance over seeds that the seed explains (ICC), from 0 to 1."""

    def interval(self, difference: float, sizes: tuple[int, int] = (1, 1)) -> Interval:
        """Return the difference of two systems' means with its 95 % interval, with seeds as blocks.

        Args:
            difference: of the means.
            sizes: how many systems each of the two numbers is the mean of.
        """
        from scipy.stats import t

        half = float(t.ppf(0.975, self.freedom)) * self._error(sizes)
        return Interval(difference, difference - half, difference + half)

    def p(self, difference: float, margin: float = 0.0, sizes: tuple[int, int] = (1, 1)) -> float:
        """Return the p of Student's test that two systems' means are equal, with seeds as blocks.

        With a margin, it is that of two one-sided tests that it is smaller. Other arguments are
        those of `interval`.
        """
        from scipy.stats import t

        if margin:
            return float(t.sf((margin - abs(difference)) / self._error(sizes), self.freedom))
        return 2 * float(t.sf(abs(difference) / self._error(sizes), self.freedom))

    def detectable(self, tests: int = 1) -> float:
        """Return the smallest true difference that is significant at .05 in 80 % of experiments.

        Of several tests, each is at .05 divided by their number: Holm's method finds no fewer.
        """
        from scipy.optimize import brentq
        from scipy.stats import chi2, nct, t

        limit = float(t.isf(0.025 / tests, self.freedom))

        def missing(errors: float) -> float:
            return 0.8 - float(nct.sf(limit, self.freedom, errors))

        # With few degrees of freedom, the deviation is often estimated far too high.
        too_high = math.sqrt(chi2.ppf(0.8, self.freedom) / self.freedom)
        return float(brentq(missing, 0, limit * max(too_high, 1) + 10)) * self._error()

    def _error(self, sizes: tuple[int, int] = (1, 1)) -> float:
        return self.deviation * math.sqrt(sum(1 / size for size in sizes) / self.seeds)


def fit_blocks(scores: Sequence[Sequence[float]]) -> Blocks | None:
    """Fit the effects of systems and seeds to scores, ``scores[system][seed]``.

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
    """Return the difference of two systems' mean scores, with an interval over seeds and sentences.

    Each sample draws sentences, the same for all outputs, and of each system seeds. The 95 %
    interval tells what other seeds and other sentences may give. Of n seeds, n − 1 are drawn: with
    n, the variance of the mean would be (n − 1) / n of what it is.

    Quantiles of these samples ignore that few seeds know their own variance badly. So the half
    width is the samples' standard deviation times Student's quantile. Its degrees of freedom are
    Satterthwaite's, where the part of the variance that seeds explain has Welch's, and that of the
    sentences has so many that they do not matter. Of a single seed, and where no seed differs, only
    sentences vary, and the interval is that of the samples' quantiles.

    Args and errors are those of `randomisation`.
    """
    size = check_same_text(*system, *baseline)
    pair = [np.stack([*outputs]).astype(float) for outputs in (system, baseline)]
    generator = np.random.default_rng(SEED)

    def draw() -> list[tuple[np.ndarray, np.ndarray]]:
        """Draw sentences and seeds; return sums of all outputs, and numbers of drawn outputs."""
        weights = np.bincount(generator.integers(size, size=size), minlength=size).astype(float)
        return [(weights @ o, generator.integers(len(o), size=max(1, len(o) - 1))) for o in pair]

    scores = [score(outputs.sum(1)) for outputs in pair]
    difference = float(scores[0].mean() - scores[1].mean())
    drawn = [draw() for _ in range(SAMPLES)]
    means = []
    for draws in zip(*drawn, strict=True):  # of the system, and of the baseline
        sums, seeds = zip(*draws, strict=True)
        drawn_scores = np.take_along_axis(score(np.array(sums)), np.array(seeds), axis=1)
        means.append(drawn_scores.mean(axis=1))
    samples = means[0] - means[1]
    test = _welch(scores[0].tolist(), scores[1].tolist())
    if test is None:
        return Interval(difference, *map(float, np.quantile(samples, [0.025, 0.975])))
    from scipy.stats import sem, t

    error = float(samples.std(ddof=1))
    freedom = float(test.df) * max(1.0, error / math.hypot(*map(sem, scores))) ** 4
    half = error * float(t.ppf(0.975, freedom))
    return Interval(difference, difference - half, difference + half)
