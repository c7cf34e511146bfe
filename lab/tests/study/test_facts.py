"""What facts of pages compute, beside scipy, on a few trainings."""

import json
import math
from statistics import mean

import pytest
from scipy.stats import nct, spearmanr, t, ttest_ind, ttest_rel

from lab.tests.evaluation.test_results import cell
from study import facts
from study.facts import Number, compute
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.evaluation.intervals import fit_blocks

PLAN = """
margin: 0.25
family:
  seeds: [6, 7, 8, 9]
  contrasts:
    A:
      - a - base
      - b - base (=)
      - c - base
estimates: {seeds: [6, 7, 8], contrasts: {B: [d - other/a, tuned - a]}}
names: {tuned: "a:x=2"}
"""
#: NLL of the seeds from 6; those after the fourth are not planned.
NLL = {
    "base": [3.00, 3.01, 2.99, 3.00, 4.0],
    "a": [2.30, 2.31, 2.29, 2.35, 5.0],
    "b": [3.00, 3.02, 3.00, 2.99],
    "c": [2.9, 3.3, 3.1, 3.2],
    "d": [2.5, 2.6, 2.7, 9.0],
    "a:x=2": [2.0, 2.5, 2.1],
}
OTHER = {"a": [2.4, 2.1, 2.2, 1.0]}


def save(path, nlls, bleu=20.0):
    cells = [
        {
            **cell(name, seed, bleu + seed),
            "valid": {"loss": 5 * value, "nll_loss": value / math.log(2)},
            "test": {"nll_loss": 2 * value / math.log(2)},
            "subwords_per_word": 1.5,
            "updates": 800 + seed,
        }
        for name, values in nlls.items()
        for seed, value in enumerate(values, 6)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"corpus": path.stem, "cells": cells}))


@pytest.fixture(autouse=True)
def _a_small_study(request, tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "ROOT", tmp_path)
    monkeypatch.setattr(facts, "RESULTS", tmp_path / "study" / "results")
    (tmp_path / "configs" / "mine").mkdir(parents=True)
    (tmp_path / "configs" / "mine" / "_plan.yaml").write_text(PLAN)
    save(facts.RESULTS / "planned" / "mine.json", NLL)
    save(facts.RESULTS / "planned" / "other.json", OTHER)
    save(facts.RESULTS / "mine.json", {"base": [3.5, 3.6, 3.7], "a": [3.0, 3.2, 3.3, 3.1]})
    rows = [{"system": "a", "seed": seed, "valid": 2.0, "test": 1.0 + seed} for seed in (1, 2)]
    (facts.RESULTS / "likelihood").mkdir()
    (facts.RESULTS / "likelihood" / "mine.json").write_text(json.dumps(rows))
    facts.open_results.cache_clear()
    request.addfinalizer(facts.open_results.cache_clear)


def values(fact, place="planned/mine"):
    return [number.value for number in compute(fact, place)]


def welch(ours, theirs):
    ends = ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    return [mean(ours) - mean(theirs), ends.low, ends.high]


def first(name, count=4):
    return NLL[name][:count]


def test_of_one_system_it_is_the_mean():
    assert compute("a: NLL, test NLL, loss, NLL per word, BLEU", "planned/mine") == [
        Number(pytest.approx(mean(NLL["a"])), 3),
        Number(pytest.approx(2 * mean(NLL["a"])), 3),
        Number(pytest.approx(5 * mean(NLL["a"])), 3),
        Number(pytest.approx(1.5 * mean(NLL["a"])), 3),
        Number(28, 1),
    ]
    assert values("a, b: NLL in planned/mine seeds 6-7") == pytest.approx([2.305, 3.01])
    assert values("tuned: NLL in planned/mine seed 7") == pytest.approx([2.5])
    assert values("a*2: NLL") == values("a:x=2: NLL") == pytest.approx([mean(NLL["a:x=2"])])
    assert values("mine/a, other/a: NLL") == pytest.approx([3.15, mean(OTHER["a"])])
    assert values("a: test NLL, NLL in likelihood/mine") == pytest.approx([2.5, 2.0])


def test_planned_contrasts_have_the_planned_seeds():
    expected = welch(first("a"), first("base"))
    assert values("a − base: NLL") == pytest.approx(expected)
    assert values("base − a: NLL") == pytest.approx([-expected[0], -expected[2], -expected[1]])
    assert values("a − base: NLL ends, NLL only") == pytest.approx([*expected[1:], expected[0]])
    assert values("base − a: NLL only") == pytest.approx([-expected[0]])
    with_other = welch(first("d", 3), OTHER["a"][:3])
    assert values("d − other/a: NLL") == pytest.approx(with_other)
    assert values("tuned − a: NLL") == pytest.approx(welch(first("a:x=2"), first("a", 3)))
    chosen = welch(NLL["a"][:2], NLL["base"][:2])
    assert values("a − base: NLL in planned/mine seeds 6-7") == pytest.approx(chosen)


def test_other_contrasts_have_all_seeds():
    assert values("a − b: NLL") == pytest.approx(welch(NLL["a"], NLL["b"]))
    assert values("a − b: NLL only") == pytest.approx([mean(NLL["a"]) - mean(NLL["b"])])
    assert values("a − base: NLL in mine")[:1] == pytest.approx([-0.45])
    assert values("base − mine/base: NLL") == pytest.approx(welch(NLL["base"], [3.5, 3.6, 3.7]))


def test_intervals_within_seeds():
    found = values("a − base: NLL within seeds, NLL ends within seeds")
    fit = fit_blocks([first(name) for name in ("base", "a", "b")])  # c varies too much
    interval = fit.interval(mean(first("a")) - mean(first("base")))
    expected = [interval.difference, interval.low, interval.high]
    assert found == pytest.approx([*expected, *expected[1:]])
    back = values("base − a: NLL within seeds")
    assert back == pytest.approx([-expected[0], -expected[2], -expected[1]])
    fit = fit_blocks([[3.5, 3.6, 3.7], [3.0, 3.2, 3.3]])  # the seeds that both have
    interval = fit.interval(mean([3.0, 3.2, 3.3]) - 3.6)
    found = values("a − base: NLL within seeds in mine")
    assert found == pytest.approx([interval.difference, interval.low, interval.high])


def test_intervals_of_pairs():
    ends = ttest_rel([3.0, 3.2, 3.3], [3.5, 3.6, 3.7]).confidence_interval()
    expected = [mean([3.0, 3.2, 3.3]) - 3.6, ends.low, ends.high]
    found = values("a − base: NLL paired, NLL ends paired in mine")
    assert found == pytest.approx([*expected, *expected[1:]])
    # A true difference of this size is shown in 80 % of experiments with two degrees of freedom.
    error = (ends.high - ends.low) / 2 / t.isf(0.025, 2)
    [least] = values("a − base: NLL power paired in mine")
    assert nct.sf(t.isf(0.025, 2), 2, least / error) == pytest.approx(0.8, abs=1e-3)


def test_intervals_that_pool_all_systems_of_the_corpus():
    """Those of this file and of the plan's with the same seeds; not tuned, nor unsteady ones."""
    save(facts.RESULTS / "another" / "mine.json", {"a": [2.35, 2.33, 2.36], "e": [2.4, 2.43, 2.39]})
    facts.open_results.cache_clear()
    ours, theirs = [2.35, 2.33, 2.36], [2.4, 2.43, 2.39]
    pool = [*([*first(x, 3)] for x in ("base", "a", "b")), ours, theirs]  # c, d vary too much
    fit, difference = fit_blocks(pool), mean(ours) - mean(theirs)
    expected = fit.interval(difference)
    found = values("a − e: NLL pooled, NLL ends pooled, NLL only pooled in another/mine")
    ends = [expected.low, expected.high]
    assert found == pytest.approx([difference, *ends, *ends, difference])
    p, same = compute("a − e: p pooled, p same pooled in another/mine")
    assert p == Number(pytest.approx(fit.p(difference)), 2, is_p=True)
    assert same == Number(pytest.approx(fit.p(difference, margin=0.25)), 2, is_p=True)
    # The mean of several systems, seed by seed, varies less; those of other files join the pool.
    both = [mean(x) for x in zip(first("a", 3), ours, strict=True)]
    difference = mean(both) - mean(theirs)
    expected = fit.interval(difference, (2, 1))
    found = values("a & another/mine/a − another/mine/e: NLL pooled")
    assert found == pytest.approx([difference, expected.low, expected.high])


def test_the_pool_of_the_test_text_has_the_measured_likelihoods():
    rows = [
        {"system": x, "seed": seed, "valid": 2.0, "test": 1.0 + seed * seed / 900 + number}
        for number, x in enumerate("fgh")
        for seed in (6, 7, 8)
    ]
    (facts.RESULTS / "likelihood" / "mine.json").write_text(json.dumps(rows))
    tests = {"a": [2.35, 2.33, 2.36], "e": [2.4, 2.43, 2.39]}
    save(facts.RESULTS / "another" / "mine.json", tests)
    facts.open_results.cache_clear()
    twice = [[2 * x for x in values] for values in tests.values()]
    planned = [[2 * x for x in first(name, 3)] for name in ("base", "a", "b")]
    measured = [[1 + square / 900 + number for square in (36, 49, 64)] for number in range(3)]
    fit = fit_blocks([*planned, *measured, *twice])
    expected = fit.interval(mean(twice[0]) - mean(twice[1]))
    found = values("a − e: test NLL ends pooled in another/mine")
    assert found == pytest.approx([expected.low, expected.high])


def test_p_is_corrected_for_the_family():
    each = {name: ttest_ind(first(name), first("base"), equal_var=False).pvalue for name in "abc"}
    a, c = (compute(f"{name} − base: p", "planned/mine") for name in "ac")
    assert a == [Number(pytest.approx(3 * each["a"]), 3, is_p=True)]
    assert c == [Number(pytest.approx(2 * each["c"]), 2, is_p=True)], "it is above .1"
    [whole] = compute("c − base: p uncorrected in planned/mine seeds 6-9")
    assert whole == Number(pytest.approx(each["c"]), 2, is_p=True)


def test_the_verdict_has_the_p_that_decides():
    assert compute("a − base: verdict", "planned/mine") == compute("a − base: p", "planned/mine")
    assert compute("b − base: verdict", "planned/mine") == compute(
        "base − b: p same", "planned/mine"
    )
    assert compute("c − base, d − other/a: verdict", "planned/mine") == []
    ours, theirs = first("b"), first("base")
    one = ttest_ind([x + 0.25 for x in ours], theirs, equal_var=False, alternative="greater")
    other = ttest_ind([x - 0.25 for x in ours], theirs, equal_var=False, alternative="less")
    p = max(one.pvalue, other.pvalue)
    assert values("b − base: p same") == pytest.approx([p])
    assert values("b − base: p same uncorrected in planned/mine seeds 6-9") == pytest.approx([p])


def test_what_is_asked_of_all_together():
    assert compute("*: trainings, ended at 810, margin", "planned/mine") == [
        Number(25, 0),
        Number(2, 0),
        Number(0.25, 2),
    ]
    assert values("a*: trainings, ended at 1,000") == [8, 0]
    assert values("*: trainings in planned/*") == [29]
    means = [[mean(NLL[x][:2]) for x in "abc"], [mean(NLL[x][1:3]) for x in "abc"]]
    [found] = compute(
        "a, b, c: rank correlation with planned/mine seeds 7-8 in planned/mine seeds 6-7"
    )
    assert found == Number(pytest.approx(spearmanr(*means).statistic), 2)


def test_how_much_validations_jitter():
    """Beside loops over two systems with two seeds each."""
    curves = {
        ("a", 6): [9.0, 2.0, 1.9, 2.0, 1.7],
        ("a", 7): [8.0, 2.2, 2.0, 1.9, 1.8],
        ("b", 6): [9.5, 1.7, 1.8, 1.6, 1.6],
        ("b", 7): [9.0, 1.9, 2.0, 1.7, 1.5],
    }
    chosen = {key: min(curve) for key, curve in curves.items()}
    cells = [
        {
            **cell(name, seed, 20.0),
            "valid": {"loss": 1.0, "nll_loss": chosen[name, seed] / math.log(2)},
            "nll_by_update": {str(100 * n): x / math.log(2) for n, x in enumerate(curve, 1)},
        }
        for (name, seed), curve in curves.items()
    ]
    path = facts.RESULTS / "curves.json"
    path.write_text(json.dumps({"corpus": "curves", "cells": cells}))
    late = {key: curve[1:] for key, curve in curves.items()}
    squares = [(x[n] - (x[n - 1] + x[n + 1]) / 2) ** 2 for x in late.values() for n in range(1, 3)]
    [found] = compute("a, b: scatter of updates 200 to 1,000 in curves")
    assert found == Number(pytest.approx(math.sqrt(mean(squares) / 1.5)), 3)

    def deviation(values):
        return fit_blocks([[values[name, seed] for seed in (6, 7)] for name in "ab"]).deviation

    means = {key: mean(curve) for key, curve in late.items()}
    expected = [deviation(chosen), deviation(means), (deviation(chosen) / deviation(means)) ** 2]
    asked = "deviation, deviation of the mean of updates 200 to 1,000, times the seeds with the "
    assert values(f"a, curves/b: {asked}mean of updates 200 to 1,000", "curves") == pytest.approx(
        expected
    )
    sides = [mean(means[name, seed] for seed in (6, 7)) for name in "ab"]
    [found] = compute("a, b: difference of the mean of updates 200 to 1,000 in curves")
    assert found == Number(pytest.approx(sides[0] - sides[1]), 3)
    with pytest.raises(DataError, match="^a: no validation in updates 600 to 900"):
        compute("a, b: deviation of the mean of updates 600 to 900 in curves")
    with pytest.raises(DataError, match="^a, seed 6: has no NLL by update"):
        compute("a: scatter of updates 1 to 2 in planned/mine")
    with pytest.raises(DataError, match="^a: too few systems or seeds"):
        compute("a: deviation in planned/mine")


@pytest.mark.parametrize(
    "fact",
    [
        "a − b: p",
        "a − b: p same",
        "a − base: p same",
        "a − b: verdict",
        "a − base: p in planned/o*",
        "a − b: NLL paired in planned/mine seed 6",
        "a − b: NLL pooled in planned/mine seed 6",
    ],
)
def test_what_was_not_tested_has_no_p(fact):
    with pytest.raises(DataError, match="not known in planned/|no such system"):
        compute(fact, "planned/mine")


def test_what_was_not_measured_is_named():
    with pytest.raises(DataError, match="^a: planned/mine has no AER of it"):
        compute("a: AER", "planned/mine")
