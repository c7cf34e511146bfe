"""Compare the scores of two systems' seeds: differences, intervals and Welch's tests."""

from __future__ import annotations

import functools
import math
import statistics
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from ...base.errors import DataError
from .measures import format_signed

_SAMPLES, _SEED = 1000, 12345
_BLEU: Any = BLEU(force=True)  # once: it makes a tokeniser, which takes as long as a score


@dataclass(frozen=True)
class Interval:
    """A difference of means, and between which values it lies."""

    difference: float
    low: float
    high: float

    def format(self, digits: int) -> str:
        """Return both."""
        number, low, high = (
            format_signed(x, digits) for x in (self.difference, self.low, self.high)
        )
        return f"{number} [{low}, {high}]"


def welch_interval(
    values: Sequence[float], baseline: Sequence[float], confidence: float = 0.95
) -> Interval | None:
    """Return the difference of two means with its interval, which fits Welch's t-test.

    None if a sample has fewer than two values, or if nothing varies.
    """
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
    """Return the p of two one-sided Welch tests that two means differ by less than a margin.

    A small p says that they are the same for all practical purposes; that a test finds no
    difference does not. At .05, it asks whether the 90 % interval lies within the margin.

    Args:
        values, baseline: the scores of the seeds.
        margin: the smallest difference that matters, above 0.

    Returns:
        The larger of both p. None if a sample has fewer than two values, or if nothing varies.
    """
    sides = ((margin, "greater"), (-margin, "less"))
    tests = [_welch([x + shift for x in values], baseline, side) for shift, side in sides]
    return None if None in tests else max(float(test.pvalue) for test in tests)


def _welch(values: Sequence[float], baseline: Sequence[float], side: str = "two-sided") -> Any:
    """Return scipy's Welch's t-test; None if a sample is too small, or if nothing varies."""
    if min(len(values), len(baseline)) < 2 or all(len({*x}) == 1 for x in (values, baseline)):
        return None
    from scipy.stats import ttest_ind  # takes a second to import

    with warnings.catch_warnings():  # of values that hardly vary
        warnings.simplefilter("ignore", RuntimeWarning)
        return ttest_ind(values, baseline, equal_var=False, alternative=side)


def estimate_deviations(samples: Iterable[Sequence[float]]) -> list[float]:
    """Estimate the standard deviation of each sample that has two values or more.

    That of a few values is more often below the true one than above it. So each is divided by the
    median of its distribution for values that are normal, with a deviation of 1: it is then as
    often below as above, whatever the number of values.
    """
    varying = [sample for sample in samples if len(sample) > 1]
    if not varying:
        return []
    from scipy.stats import chi2  # takes a second to import

    medians = {size: float(chi2.median(size - 1)) for size in map(len, varying)}
    return [
        math.sqrt(statistics.variance(sample) * (len(sample) - 1) / medians[len(sample)])
        for sample in varying
    ]


def smallest_detectable(
    deviation: float, count: int, others: int | None = None, power: float = 0.8, level: float = 0.05
) -> float:
    """Return the smallest difference of means that so many seeds are likely to show.

    If this is the true difference, Welch's t-test finds one with probability ``power``.

    Args:
        deviation: standard deviation over seeds, the same for both systems.
        count: seeds of a system; two or more.
        others: seeds of the baseline; None: as many.
        power: the probability.
        level: the p below which a difference counts; the smallest of several corrected ones is
            tested at .05 / n.

    Raises:
        DataError: a system has fewer than two seeds.
    """
    others = count if others is None else others
    if min(count, others) < 2:
        raise DataError(f"{count} and {others} seeds: a test needs two seeds of each system")
    return _detectable_errors(count, others, power, level) * _error(deviation, count, others)


def _error(deviation: float, count: int, others: int) -> float:
    """Return the standard error of the difference of two means."""
    return deviation * math.sqrt(1 / count + 1 / others)


@functools.cache
def _detectable_errors(count: int, others: int, power: float, level: float) -> float:
    """Return the smallest difference in standard errors."""
    from scipy.special import ndtr
    from scipy.stats import t

    # Whatever deviations the seeds seem to have, the difference is found if a normal variable is
    # beyond a limit that depends on them; the power is the mean over these deviations.
    (ours, how_often), (theirs, how_often_theirs) = map(_deviations, (count, others))
    variances = ours[:, None] ** 2 / count, theirs**2 / others
    # Welch's degrees of freedom
    each = variances[0] ** 2 / (count - 1) + variances[1] ** 2 / (others - 1)
    freedom = sum(variances) ** 2 / each
    limits = t.isf(level / 2, freedom) * np.sqrt(sum(variances)) / _error(1, count, others)
    weights = how_often[:, None] * how_often_theirs

    def reached(errors: float) -> bool:
        reached_power = np.average(ndtr(errors - limits) + ndtr(-errors - limits), weights=weights)
        return bool(reached_power > power)

    low, high = 0.0, 1.0
    while not reached(high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _deviations(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the deviations that so many values may have if the true one is 1, and how often."""
    freedom = count - 1
    width = 8 / math.sqrt(2 * freedom)
    deviations = np.linspace(max(0.0, 1 - width), 1 + width, 201)[1:]
    logarithm = (freedom - 1) * np.log(deviations) - freedom * deviations**2 / 2
    return deviations, np.exp(logarithm - logarithm.max())


def compute_bleu(totals: np.ndarray) -> float:
    """Return BLEU of the summed counts of `.translation.count_ngrams`."""
    return float(_BLEU._compute_score_from_stats(totals.tolist()).score)


def bootstrap_seeds(
    system: Sequence[np.ndarray],
    baseline: Sequence[np.ndarray],
    score: Callable[[np.ndarray], float] = compute_bleu,
    confidence: float = 0.95,
) -> Interval:
    """Bootstrap the difference of mean scores over seeds and sentences together.

    Each sample draws sentences, the same for all outputs, and of each system seeds. The interval
    tells what other seeds and other sentences may give; that of one system's seeds alone, or of
    the sentences alone, is too narrow. Of n seeds, n − 1 are drawn: with n, the variance of the
    mean would be (n − 1) / n of what it is.

    Quantiles of these samples would be too narrow, too: they ignore that few seeds know their own
    variance badly. So the half width is the samples' standard deviation times Student's quantile.
    Its degrees of freedom are Satterthwaite's, where the part of the variance that seeds explain
    has Welch's, and that of the sentences has so many that they do not matter.

    A single seed is always drawn, so that only sentences vary. Then, and where no seed differs,
    the interval is that of the samples' quantiles.

    Args:
        system: what is counted in each sentence, ``(sentences, counts)``, with each seed.
        baseline: the same for the baseline, perhaps with other seeds.
        score: the score of the counts' sum over sentences, ``(counts)``.
        confidence: of the interval.

    Returns:
        The difference with its interval.

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

    def compare(weights: np.ndarray, seeds: Sequence[np.ndarray]) -> float:
        means = []
        for outputs, drawn in zip(pair, seeds, strict=True):
            scores = {seed: score(weights @ outputs[seed]) for seed in {*drawn.tolist()}}
            means.append(np.mean([scores[seed] for seed in drawn]))
        return float(means[0] - means[1])

    def draw() -> float:
        weights = np.bincount(generator.choice(size, size), minlength=size).astype(float)
        seeds = [generator.choice(len(outputs), max(1, len(outputs) - 1)) for outputs in pair]
        return compare(weights, seeds)

    difference = compare(np.ones(size), [np.arange(len(outputs)) for outputs in pair])
    drawn = np.array([draw() for _ in range(_SAMPLES)])
    scores = [[score(counts.sum(0)) for counts in outputs] for outputs in pair]
    test = _welch(scores[0], scores[1])
    if test is None:
        low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
        return Interval(difference, float(low), float(high))
    from scipy.stats import sem, t

    error = float(drawn.std(ddof=1))
    freedom = float(test.df) * max(1.0, error / math.hypot(*map(sem, scores))) ** 4
    half = error * float(t.ppf((1 + confidence) / 2, freedom))
    return Interval(difference, difference - half, difference + half)
