"""Test whether a score of an output differs from a baseline's by more than chance.

One test decides for two outputs: paired approximate randomisation (Riezler and Maxwell 2005). If
the systems were equally good, it would not matter which of them wrote which translation; p is how
often a random exchange makes a difference at least as large. The paired bootstrap (Koehn 2004)
assumes that the test set stands for all sentences, and that samples spread in the same way if there
is no difference. As Moses and sacreBLEU compute it, it also counts only one direction, so that its
p is about half as large. Here it only gives intervals.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from syncattn_fairseq.base.errors import DataError

from .measures import Verdict, decide, holm

#: sacreBLEU's defaults: samples of randomisation (ar) and bootstrap (bs), and the seed of both.
_EXCHANGES, SAMPLES, SEED = 10000, 1000, 12345
#: Differences smaller than this are due to rounding.
_ROUNDING = 1e-9
Score = Callable[[np.ndarray], np.ndarray]
"""Computes a score from sums over sentences, ``(..., counts)``."""
#: How many numbers a matrix of random choices has at most.
_AT_ONCE = 2**23
_ORDERS = 4


def compute_bleu(totals: np.ndarray, brevity: bool = True) -> np.ndarray:
    """Compute BLEU as sacreBLEU does, from sums of the counts of `count_ngrams`, ``(..., 10)``.

    Without ``brevity``, translations that are too short have no penalty.
    """
    length, reference_length = totals[..., 0], totals[..., 1]
    matching, every = totals[..., 2 : 2 + _ORDERS], totals[..., 2 + _ORDERS :]
    none = matching <= _ROUNDING
    smoothed = 0.5 ** np.cumsum(none, axis=-1)  # "exp": the k-th order without a match counts 2^-k
    counted = (every.min(axis=-1) > 0) & ~none.all(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(none, smoothed, matching) / every).mean(axis=-1)
        penalty = np.minimum(0, 1 - reference_length / length) if brevity else 0.0
        scores = 100 * np.exp(logs + penalty)
    return np.where(counted, scores, 0.0)


def compute_precision(totals: np.ndarray) -> np.ndarray:
    """Compute BLEU without its brevity penalty, the geometric mean of the four precisions."""
    return compute_bleu(totals, brevity=False)


@dataclass(frozen=True)
class Significance:
    """A system's score, with a confidence interval and a test against the baseline."""

    baseline: str
    difference: float
    confidence: float
    """Half the width of the 95 % interval of the score, by bootstrap resampling."""
    p: float | None
    """The p-value of the difference, by paired approximate randomisation; None for the baseline."""
    signature: str
    """sacreBLEU's signature, with the seed and the numbers of samples.

    ``bs`` are those of the bootstrap, ``ar`` those of approximate randomisation.
    """
    corrected: float | None = None
    """The p-value corrected for all compared systems by Holm's method."""
    verdict: Verdict | None = None
    """Better, worse or not known; None for the baseline."""
    interval: tuple[float, float] | None = None
    """The 95 % interval of the difference, by bootstrap over sentences; None for the baseline."""


def compare_with_baseline(
    counts: Mapping[str, np.ndarray], baseline: str, tokenize: str = "13a"
) -> dict[str, Significance]:
    """Test each system's BLEU against the baseline's, from the counts of `count_ngrams`.

    The same translations always give the same result. The tokenizer, sacreBLEU's, is for the
    signature. `DataError`: no system has the baseline's name.
    """
    if baseline not in counts:
        raise DataError(f"no system is named {baseline}; choose one of {', '.join(counts)}")
    metric = BLEU(tokenize=tokenize, force=True)
    metric.num_refs = 1  # it would learn that from the texts
    signature = metric.get_signature()
    for name, value in (("seed", SEED), ("bs", SAMPLES), ("ar", _EXCHANGES)):
        signature.update(name, value)
    return compare_scores(counts, baseline, str(signature))


def compare_scores(
    counts: Mapping[str, np.ndarray], baseline: str, signature: str, score: Score = compute_bleu
) -> dict[str, Significance]:
    """Test a score of each system against the baseline's, if the baseline has scores.

    Args:
        counts: the statistics of each sentence, ``(sentences, n)``, by the name of the system.
        baseline: the name of the baseline.
        signature: sacreBLEU's signature of the score, for the results.
        score: computes the score from sums of the statistics.
    """
    theirs = counts.get(baseline)
    samples = {name: resample(ours, score) for name, ours in counts.items()}
    tests: dict[str, Significance] = {}
    for name, ours in counts.items():
        low, high = _find_ends(samples[name])
        test = Significance(baseline, 0.0, (high - low) / 2, None, signature)
        if theirs is not None and name != baseline:
            difference, p = randomisation([ours], [theirs], score)
            ends = _find_ends(samples[name] - samples[baseline])
            test = replace(test, difference=difference, p=p, interval=ends)
        tests[name] = test
    every = holm([test.p for test in tests.values()])
    for (name, test), corrected in zip(tests.items(), every, strict=True):
        verdict = None if corrected is None else decide(test.difference, corrected)
        tests[name] = replace(test, corrected=corrected, verdict=verdict)
    return tests


def randomisation(
    system: Sequence[np.ndarray], baseline: Sequence[np.ndarray], score: Score = compute_bleu
) -> tuple[float, float]:
    """Return a system's difference from a baseline and its p, by approximate randomisation.

    Each sentence is exchanged or not, with the outputs of all seeds together, since they are not
    independent. p is the share of exchanges whose difference is at least as large, in either
    direction. What is counted in each sentence is ``(sentences, counts)`` for each seed; a score is
    computed from sums over sentences, ``(..., counts)``. `DataError`: numbers of sentences differ.
    """
    difference, p = randomise_each(system, baseline, score)
    return float(difference), float(p)


def randomise_each(
    system: Sequence[np.ndarray], baseline: Sequence[np.ndarray], score: Score
) -> tuple[np.ndarray, np.ndarray]:
    """Test several differences in scores of the same sentences by approximate randomisation.

    Args:
        system: as for `randomisation`.
        baseline: as for `randomisation`.
        score: returns ``(..., scores)``; an exchange that leaves a score undefined, NaN, counts as
            one with a large difference.

    Returns:
        The difference of each score, and its p.
    """
    size = check_same_text(*system, *baseline)
    # The mean counts as one output, however many seeds.
    ours, theirs = (np.asarray(counts).mean(axis=0) for counts in (system, baseline))
    totals = ours.sum(0), theirs.sum(0)
    difference = np.asarray(score(totals[0]) - score(totals[1]))
    theirs -= ours
    del ours
    generator = np.random.default_rng(SEED)
    bytes_each = -(-size // 8)
    as_large, left = np.zeros(difference.shape, int), _EXCHANGES
    while left:
        rows = min(left, max(1, _AT_ONCE // (8 * bytes_each)))
        drawn = np.frombuffer(generator.bytes(rows * bytes_each), np.uint8)
        exchanged = np.unpackbits(drawn.reshape(rows, bytes_each), axis=1, count=size)
        moved = exchanged.astype(float) @ theirs
        chance = np.abs(score(totals[0] + moved) - score(totals[1] - moved))
        as_large += (~(chance < abs(difference) - _ROUNDING)).sum(0)
        left -= rows
    return difference, (as_large + 1) / (_EXCHANGES + 1)


def check_same_text(*outputs: np.ndarray) -> int:
    """Return how many sentences each output has; raise `DataError` if the numbers differ."""
    sizes = sorted({len(counts) for counts in outputs})
    if len(sizes) > 1:
        raise DataError(f"outputs of different texts, with {sizes[0]} and {sizes[1]} sentences")
    return sizes[0]


def bootstrap_interval(
    system: np.ndarray, baseline: np.ndarray, score: Score = compute_bleu
) -> tuple[float, float]:
    """Return the 95 % interval of the difference of two outputs' scores, by bootstrap."""
    return _find_ends(resample(system, score) - resample(baseline, score))


def _find_ends(samples: np.ndarray) -> tuple[float, float]:
    """Return the ends of the 95 % interval of samples."""
    low, high = np.quantile(samples, [0.025, 0.975])
    return float(low), float(high)


def resample(counts: np.ndarray, score: Score = compute_bleu) -> np.ndarray:
    """Return the scores of bootstrap samples of sentences, drawn alike for all outputs of a text.

    Args:
        counts: what is counted in each sentence, ``(sentences, counts)``.
        score: computes a score, or several, from sums over sentences.

    Returns:
        Scores, ``(samples,)`` or ``(samples, scores)``.
    """
    generator = np.random.default_rng(SEED)
    size = len(counts)
    counts = counts.astype(float)  # exact, and the fastest to multiply
    drawn = (generator.integers(size, size=size) for _ in range(SAMPLES))
    return score(np.array([np.bincount(sample, minlength=size) @ counts for sample in drawn]))
