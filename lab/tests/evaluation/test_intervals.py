import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from scipy.stats import t, ttest_rel

from syncattn_lab.evaluation import intervals
from syncattn_lab.evaluation.intervals import (
    Blocks,
    bootstrap_seeds,
    equivalence,
    fit_blocks,
    welch,
    welch_interval,
)
from syncattn_lab.evaluation.translation import count_ngrams

LPSI = [20.7, 22.2, 21.7, 22.6, 22.4]
BASELINE = [19.1, 18.8, 19.3, 18.7, 20.1]
samples = st.lists(st.floats(-9, 9), min_size=2, max_size=6, unique=True).filter(
    lambda values: statistics.pstdev(values) > 1e-3
)


@given(samples, samples)
def test_the_ends_of_an_interval_are_where_the_test_turns(values, baseline):
    found = welch_interval(values, baseline)
    assert found is not None
    assert found.difference == pytest.approx(statistics.fmean(values) - statistics.fmean(baseline))
    for end in (found.low, found.high):
        assert welch([x - end for x in values], baseline) == pytest.approx(0.05)
    narrow = welch_interval(values, baseline, 0.9)
    assert narrow is not None
    assert welch([x - narrow.low for x in values], baseline) == pytest.approx(0.1)


@pytest.mark.parametrize("pair", [([1.0], BASELINE), (BASELINE, [1.0]), ([1.0, 1], [2.0, 2])])
def test_without_variance_there_is_none(pair):
    assert welch_interval(*pair) is welch(*pair) is None
    assert equivalence(*pair, margin=1) is None


@given(samples, samples, st.floats(0.1, 20))
def test_the_same_is_an_interval_within_the_margin(values, baseline, margin):
    p = equivalence(values, baseline, margin)
    interval = welch_interval(values, baseline, 0.9)
    assert interval is not None and p is not None
    inside = -margin < interval.low and interval.high < margin
    assert inside == (p < 0.05) or p == pytest.approx(0.05)


def test_blocks_by_hand():
    """Systems 0 and 3, seeds -1 and 1, and a rest of 0.5 that changes its sign."""
    found = fit_blocks([[-0.5, 0.5], [1.5, 4.5]])
    assert found is not None and (found.freedom, found.seeds) == (1, 2)
    assert found.deviation == pytest.approx(1.0)  # four rests of 0.5, one degree of freedom
    # Seeds vary by 2 * 1^2 * 2 = 4 with one degree of freedom: F is 4, ICC is 3 / 5.
    assert found.share == pytest.approx(0.6)
    half = 12.706  # t with one degree of freedom; the error is 1 * sqrt(2 / 2)
    interval = found.interval(3.0)
    assert (interval.low, interval.high) == pytest.approx((3 - half, 3 + half), abs=1e-3)


@given(st.lists(st.tuples(*[st.floats(-9, 9)] * 2), min_size=2, max_size=6))
def test_blocks_of_two_systems_are_a_paired_test(pairs):
    ours, theirs = (list(column) for column in zip(*pairs, strict=True))
    differences = [a - b for a, b in pairs]
    found = fit_blocks([ours, theirs])
    if statistics.pstdev(differences) < 1e-3:
        assert found is None or found.deviation < 1e-2
        return
    assert found is not None
    interval = found.interval(statistics.fmean(differences))
    expected = ttest_rel(ours, theirs).confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    difference = statistics.fmean(differences)
    assert found.p(difference) == pytest.approx(ttest_rel(ours, theirs).pvalue)
    shifted = ([x + margin for x in ours] for margin in (2.0, -2.0))
    sides = zip(shifted, ("greater", "less"), strict=True)
    same = max(ttest_rel(x, theirs, alternative=side).pvalue for x, side in sides)
    assert found.p(difference, 2.0) == pytest.approx(same)


@pytest.mark.parametrize("scores", [[], [[1.0, 2.0]], [[1.0], [2.0]], [[1, 2], [2, 3]]])
def test_without_a_rest_there_are_no_blocks(scores):
    assert fit_blocks(scores) is None


@pytest.mark.parametrize(
    ("systems", "count", "tests"), [(2, 5, 1), (4, 3, 1), (4, 3, 7), (2, 2, 3), (2, 2, 50)]
)
def test_it_is_shown_with_that_power(systems, count, tests):
    generator = np.random.default_rng(1)
    freedom = (systems - 1) * (count - 1)
    least = Blocks(0.66, freedom, count, 0.0).detectable(tests)
    rest = 0.66 * np.sqrt(generator.chisquare(freedom, 40000) / freedom)
    drawn = generator.normal(least, 0.66 * math.sqrt(2 / count), 40000)
    assert (
        drawn > t.ppf(1 - 0.025 / tests, freedom) * rest * math.sqrt(2 / count)
    ).mean() == pytest.approx(0.8, abs=0.01)


# ---- bootstrap


def mean(totals: np.ndarray) -> np.ndarray:
    """A score: the mean of the first column, if the second counts."""
    return totals[..., 0] / totals[..., 1]


def outputs(seeds: list[float], sentences: np.ndarray) -> list[np.ndarray]:
    """Outputs whose scores are those of the sentences, moved by each seed's number."""
    return [np.stack([sentences + seed, np.ones(len(sentences))], 1) for seed in seeds]


def test_the_bootstrap_equals_the_loop(monkeypatch):
    monkeypatch.setattr(intervals, "SAMPLES", 50)
    generator = np.random.default_rng(3)
    pair = [[generator.integers(1, 9, (7, 2)) for _ in range(seeds)] for seeds in (4, 1)]

    def score(output: np.ndarray, chosen: list[int]) -> float:
        columns = [sum(int(output[s, k]) for s in chosen) for k in (0, 1)]
        return columns[0] / columns[1]

    generator = np.random.default_rng(12345)
    drawn = []
    for _ in range(50):
        chosen = generator.choice(7, 7).tolist()
        means = []
        for system, count in zip(pair, (3, 1), strict=True):  # one seed fewer than there are
            seeds = generator.choice(len(system), count).tolist()
            means.append(statistics.fmean(score(system[seed], chosen) for seed in seeds))
        drawn.append(means[0] - means[1])
    observed = statistics.fmean(score(o, list(range(7))) for o in pair[0])
    observed -= score(pair[1][0], list(range(7)))

    found = bootstrap_seeds(*pair, mean)
    assert found.difference == pytest.approx(observed)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))


@pytest.mark.parametrize("count", [2, 5])
def test_it_varies_as_much_as_the_seeds_do(count):
    """Where all sentences are alike, only seeds count, and few are not taken for less varied."""
    ours, theirs = ([float(n) for n in range(count)] for _ in range(2))
    found = bootstrap_seeds(outputs(ours, np.zeros(4)), outputs(theirs, np.zeros(4)), mean)
    drawn = [
        statistics.fmean(part)
        for part in np.random.default_rng(0).choice(ours, (4000, max(1, count - 1)))
    ]
    assert statistics.pvariance(drawn) == pytest.approx(statistics.variance(ours) / count, rel=0.1)
    # Few seeds know their own variance badly, as Welch's test takes into account.
    expected = welch_interval(ours, theirs)
    assert expected is not None
    assert found.high - found.low == pytest.approx(expected.high - expected.low, rel=0.15)
    assert found.high + found.low == pytest.approx(2 * found.difference)


def test_it_is_wider_than_that_of_the_sentences_alone():
    sentences = np.random.default_rng(1).normal(0, 1, 200)
    noise = np.random.default_rng(2).normal(0, 1, 200)
    alike, apart = [0.5] * 5, [0.0, 0.25, 0.5, 0.75, 1.0]
    theirs = outputs([0.0] * 5, sentences)
    narrow = bootstrap_seeds(outputs(alike, sentences + noise), theirs, mean)
    wide = bootstrap_seeds(outputs(apart, sentences + noise), theirs, mean)
    assert narrow.difference == pytest.approx(wide.difference)
    assert narrow.high - narrow.low == pytest.approx(2 * 1.96 / math.sqrt(200), rel=0.1)
    # The variance of sentences is known well, so seeds that hardly differ do not widen it.
    nearly = bootstrap_seeds(outputs([0.5, 0.51], sentences + noise), theirs[:2], mean)
    assert nearly.high - nearly.low == pytest.approx(2 * 1.96 / math.sqrt(200), rel=0.1)
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_the_default_is_bleu():
    references = [f"the man saw the old dog number {n}" for n in range(6)]
    made = [text.replace("old dog", "dog old") for text in references[:3]] + references[3:]
    counts = [count_ngrams(made, references), count_ngrams(references, references)]
    found = bootstrap_seeds([counts[0]], [counts[1]])
    bleu = BLEU(force=True).corpus_score(made, [references]).score
    assert found.difference == pytest.approx(bleu - 100)
    assert found.low < found.difference < found.high <= 0
