"""Contrasts over seeds, planned or not: differences, intervals, tests and verdicts."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind, ttest_rel

from syncattn_fairseq.base.errors import DataError
from syncattn_lab.evaluation.contrast import Cells, Contrast
from syncattn_lab.evaluation.differences import Difference, compare
from syncattn_lab.evaluation.intervals import Interval, fit_blocks
from syncattn_lab.evaluation.measures import BLEU, NLL, NLL_PER_WORD, Measure, holm
from syncattn_lab.evaluation.results_file import pack_counts
from syncattn_lab.evaluation.sentence_tests import bootstrap_sentences, randomise_sentences
from syncattn_lab.evaluation.translation import count_ngrams

SCORE = Measure("score", "score", tested=("seeds",))


def index(numbers: dict[str, list[float]]) -> Cells:
    """Return cells with these numbers, of the seeds from 1."""
    return {
        name: {seed: {"seed": seed, "score": number} for seed, number in enumerate(values, 1)}
        for name, values in numbers.items()
    }


def test_a_difference_is_to_the_mean_of_the_baseline():
    found = Difference(Contrast("ours", "base"), BLEU, {1: 3.0, 2: 5.0}, {1: 1.0, 2: 2.0})
    assert found.seeds == [1.5, 3.5] and found.mean == 2.5 and found.within == 2.5
    assert Difference(Contrast("ours", "base"), BLEU, {1: 3.0, 2: 5.0}, {2: 1.0}).within == 4.0
    [measured] = compare([found.contrast], index({"ours": [3.0, 5.0], "base": [1.0, 2.0]}), SCORE)
    low, high = ttest_ind([3.0, 5.0], [1.0, 2.0], equal_var=False).confidence_interval(0.95)
    assert measured.interval
    assert (measured.interval.low, measured.interval.high) == pytest.approx((low, high))


def test_nothing_is_said_before_all_planned_seeds_are_there():
    cells = index({"ours": [1.0, 2.0, 3.0], "base": [4.0, 5.0, 7.0], "none": []})
    two, four = (Contrast("ours", "base", seeds=seeds) for seeds in ((1, 3), (1, 2, 3, 4)))
    unplanned, without = Contrast("ours", "base"), Contrast("ours", "none")
    found = compare([two, four, unplanned, without], cells, SCORE)
    assert [one.is_begun for one in found] == [True, True, True, False]
    assert [one.is_complete for one in found] == [True, False, True, False]
    assert [one.format().partition(" ")[0] for one in found] == ["−3.5", "–", "−3.3", "–"]
    assert found[0].ours == {1: 1.0, 3: 3.0}, "only the planned seeds"
    assert found[1].interval is found[1].p is found[1].blocks is None
    assert found[1].ours == {1: 1.0, 2: 2.0, 3: 3.0}, "they are counted"
    assert [one.conclusion for one in found] == ["not known", "not complete"] * 2


def test_only_a_planned_contrast_without_p_counts_in_the_correction():
    numbers = {"base": [3.0, 3.1, 2.9], "a": [4.0, 4.1, 4.3], "b": [3.0, 3.3, 3.1], "c": [1.0]}
    for planned in ((1, 2, 3), None):
        contrasts = [Contrast(name, "base", seeds=planned) for name in "abc"]
        estimate = Contrast("a", "b", seeds=planned, tested=False)
        found = compare([*contrasts, estimate], index(numbers), SCORE)
        p = [
            float(ttest_ind(numbers[name], numbers["base"], equal_var=False).pvalue)
            for name in "ab"
        ]
        expected = holm([*p, 1.0] if planned else p)[:2]
        assert [one.p for one in found] == [*map(pytest.approx, expected), None, None]
        assert found[-1].conclusion == "estimate" and found[-1].interval


def test_blocks_are_of_the_systems_that_are_compared_over_the_same_seeds():
    numbers = {
        **{"base": [10.0, 10.5, 11.0, 10.2], "a": [12.0, 12.4, 13.0, 12.3]},
        **{
            "b": [10.9, 12.0, 11.7, 11.0],
            "c": [9.0, 9.9, 10.1, 9.4],
            "other": [1.0, 5.0, 2.0, 8.0],
        },
    }
    cells = index(numbers)
    four, three = (1, 2, 3, 4), (1, 2, 3)
    found = compare(
        [
            Contrast("a", "base", seeds=four),
            Contrast("b", "base", seeds=four),
            Contrast("c", "base", seeds=three),
            Contrast("a", "c", seeds=four, per_word=True),
        ],
        cells,
        SCORE,
    )
    fits = (
        [numbers[name] for name in ("a", "base", "b")],
        [numbers[name][:3] for name in ("c", "base")],
        [numbers["a"], numbers["c"]],
    )
    expected = [*map(fit_blocks, fits)]
    assert [one.blocks for one in found] == [expected[0], *expected]


def test_a_system_whose_trainings_failed_does_not_widen_the_intervals_of_others():
    numbers = {"base": [10.0, 10.5, 11.0], "a": [12.0, 12.4, 13.0], "failing": [10.0, 90.0, 11.0]}
    found = compare([Contrast("a", "base"), Contrast("failing", "base")], index(numbers), SCORE)
    assert found[0].blocks == fit_blocks([numbers["a"], numbers["base"]])
    assert found[1].blocks == fit_blocks([numbers["failing"], numbers["base"]])


@given(
    st.lists(
        st.tuples(st.floats(-9, 9, width=32), st.floats(-9, 9, width=32)), min_size=2, max_size=8
    ),
    st.floats(0.5, 5),
)
def test_two_systems_with_seeds_as_blocks_are_the_paired_test(pairs, margin):
    differences = [ours - theirs for ours, theirs in pairs]
    if statistics.pstdev(differences) < 1e-3:
        return
    ours, theirs = ([*values] for values in zip(*pairs, strict=True))
    seeds = tuple(range(1, len(pairs) + 1))
    contrast = Contrast("a", "base", seeds=seeds, margin=margin, by_blocks=True)
    nats = Measure("score", "score", unit=NLL.unit, tested=("seeds",))
    [found] = compare([contrast], index({"a": ours, "base": theirs}), nats)
    paired = ttest_rel(ours, theirs)
    expected = paired.confidence_interval()
    assert found.interval and found.block_interval is None
    ends = found.interval.low, found.interval.high
    assert ends == pytest.approx((expected.low, expected.high), rel=1e-3, abs=1e-6)
    assert found.p == pytest.approx(float(paired.pvalue), rel=1e-3, abs=1e-6)
    sides = (
        ttest_rel([value + shift for value in ours], theirs, alternative=side).pvalue
        for shift, side in ((margin, "greater"), (-margin, "less"))
    )
    assert found.p_same == pytest.approx(max(map(float, sides)), rel=1e-3, abs=1e-6)


def test_bleu_over_sentences_is_of_the_seeds_with_counts():
    texts = {1: "a b c d e", 2: "a b c d x", 3: "a b x d e"}
    counts = {
        seed: {"seed": seed, "ngrams": pack_counts(count_ngrams([text] * 3, ["a b c d e"] * 3))}
        for seed, text in texts.items()
    }
    cells = {"ours": counts, "base": {2: counts[2], 3: {"seed": 3}, 4: counts[1]}}
    contrast = Contrast("ours", "base")
    p, seeds = randomise_sentences(contrast, cells)
    assert seeds == [2] and p == 1.0, "the same text"
    assert randomise_sentences(Contrast("ours", "none"), cells) == (None, [])
    found = bootstrap_sentences(contrast, cells)
    assert found and found.low < found.difference < found.high
    one = {"ours": counts, "base": {2: counts[2]}}
    assert bootstrap_sentences(contrast, one) is None, "one seed says nothing of others"


@pytest.mark.parametrize(
    ("interval", "measure", "side"),
    [
        (Interval(1, 0.5, 1.5), BLEU, 1),
        (Interval(-1, -1.5, -0.5), BLEU, -1),
        (Interval(1, 0.5, 1.5), NLL, -1),
        (Interval(1, -0.5, 2.5), BLEU, 0),
        (None, BLEU, 0),
    ],
)
def test_the_side_of_an_interval_says_who_is_better(interval, measure, side):
    assert Difference(Contrast("a", "b"), measure, {1: 1.0}, {1: 0.0}, interval).side == side


def test_nll_of_a_word_is_that_of_its_subwords():
    cell = {"system": "a", "seed": 3, "valid": {"nll_loss": 2.0}, "subwords_per_word": 1.5}
    assert NLL_PER_WORD.of_cell(cell) == pytest.approx(3 * math.log(2))
    [found] = compare([Contrast("a", "b", per_word=True)], {"a": {3: cell}}, NLL)
    assert found.measure is NLL_PER_WORD and found.ours == {3: NLL_PER_WORD.of_cell(cell)}
    [other] = compare([Contrast("a", "b")], {"a": {3: cell}}, NLL)
    assert other.measure is NLL and other.ours == {3: 2 * math.log(2)}
    assert NLL_PER_WORD.of_cell({"system": "a", "seed": 3}) is None
    del cell["subwords_per_word"]
    with pytest.raises(DataError, match="^a, seed 3: the results lack subwords_per_word; run the"):
        NLL_PER_WORD.of_cell(cell)
