"""A corpus's plan: what is trained, and the tables of its contrasts."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import ttest_ind, ttest_rel

from lab.tests.evaluation.test_results import cell
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.cli.recipe import main
from syncattn_lab.evaluation import intervals
from syncattn_lab.evaluation.contrast_tables import tabulate_plan
from syncattn_lab.evaluation.differences import Difference, compare
from syncattn_lab.evaluation.measures import CHRF, NLL, holm
from syncattn_lab.evaluation.results_file import pack_counts
from syncattn_lab.evaluation.translation import count_ngrams
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.figures import draw_contrasts
from syncattn_lab.recipes.grid import measure_subwords_per_word
from syncattn_lab.recipes.plan import Plan, load_plan
from syncattn_lab.recipes.planned_cells import index_cells

CONFIGS = Path(__file__).parents[3] / "configs"
PLAN = """
margin: 0.04
family:
  seeds: [6, 7, 8, 9]
  contrasts:
    A:
      - a - base
      - b - base (=)
    B:
      - c - base
estimates:
  seeds: [6, 7]
  contrasts:
    A:
      - d - a
      - other/a - a
"""
NATS = {
    **{"base": [3.00, 3.01, 2.99, 3.00], "a": [2.90, 2.91, 2.89, 2.90]},
    **{"b": [3.00, 3.02, 3.00, 2.99], "d": [2.5, 2.6]},
}
"""Nats of each seed."""
FOUR = [6, 7, 8, 9]


@pytest.fixture(autouse=True)
def _small_bootstraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "SAMPLES", 50)


def load(tmp_path: Path, text: str = PLAN) -> Any:
    (tmp_path / "_plan.yaml").write_text(text)
    return load_plan(tmp_path)


def results(nlls: dict[str, list[float]], **more: Any) -> dict[str, Any]:
    counts = pack_counts(count_ngrams(["a b c d e", "f g h i"], ["a b c d x", "f g h i"]))
    return {
        "corpus": "mine",
        "cells": [
            cell(name, seed, 20.0 + seed)
            | {"valid": {"loss": 4.0, "nll_loss": nll / math.log(2)}, "ngrams": counts}
            | {"scores": {"BLEU": 20.0 + nll * seed, "chrF": 50 + (10 if name == "a" else nll)}}
            | more
            for name, values in nlls.items()
            for seed, nll in enumerate(values, 6)
        ],
    }


def measure(plan: Plan, nlls: dict[str, list[float]]) -> list[Difference]:
    """Return the differences in NLL of all contrasts."""
    return compare(plan.contrasts, index_cells(plan, results(nlls)), NLL)


def tabulate(plan: Plan, *measured: Any) -> list[str]:
    """Return the lines of tables and notes."""
    return tabulate_plan(plan.contrasts, index_cells(plan, *measured)).format().splitlines()


def test_what_a_plan_trains(tmp_path: Path) -> None:
    plan = load(tmp_path)
    assert plan.list_trainings() == {**dict.fromkeys(("a", "base", "b", "c"), FOUR), "d": [6, 7]}
    assert plan.list_corpora() == ["other"]
    assert [contrast.tested for contrast in plan.contrasts] == [True] * 3 + [False] * 2


NAMED = """
names:
  a: x:model.dropout=b/c
  c: other/base:task.suffix=a/b
"""
"""Names for systems of this corpus and of another one."""


def test_a_name_stands_for_a_system_with_settings(tmp_path: Path) -> None:
    plan = load(tmp_path, PLAN + NAMED)
    trained = dict.fromkeys(("x:model.dropout=b/c", "base", "b"), FOUR)
    assert plan.list_trainings() == {**trained, "d": [6, 7]}
    assert plan.list_corpora() == ["other"]
    ours, theirs = {"x:model.dropout=b/c": [2.0], "base": [3.0]}, {"base:task.suffix=a/b": [2.5]}
    cells = index_cells(plan, results(ours), {"other": results(theirs)})
    first, _, third, *_ = compare(plan.contrasts, cells, NLL)
    assert first.samples == ([pytest.approx(2.0)], [pytest.approx(3.0)])
    assert third.samples == ([pytest.approx(2.5)], [pytest.approx(3.0)])


def test_p_is_corrected_for_the_whole_family(tmp_path: Path) -> None:
    plan = load(tmp_path)
    first, second, third, fourth, _ = measure(plan, NATS)
    p = [float(ttest_ind(NATS[x], NATS["base"], equal_var=False).pvalue) for x in ("a", "b")]
    expected = holm([*p, 1.0])
    assert expected[0] == pytest.approx(3 * p[0]), "the one without results counts"
    assert [first.p, second.p] == pytest.approx(expected[:2])
    assert third.p is None and fourth.p is None
    assert [one.conclusion for one in (first, second, third, fourth)] == [
        *("better", "the same", "not complete", "estimate"),
    ]
    assert measure(plan, {**NATS, "a": [4.0, 4.1, 4.0, 4.0]})[0].conclusion == "worse"
    assert measure(plan, {**NATS, "b": [2.9, 3.1, 3.0, 3.05]})[1].conclusion == "not known"


def test_a_plan_may_test_within_seeds(tmp_path: Path) -> None:
    """Two systems alone: the paired test, which sees what seeds hide from Welch's."""
    seeds = [0.4, -0.1, 0.0, -0.3]
    nlls = {
        "a": [x + shift + 2.9 for x, shift in zip(seeds, [0.0, 0.01, -0.01, 0.0], strict=True)],
        "base": [x + 3.0 for x in seeds],
    }
    text = "margin: 0.2\nfamily:\n  seeds: [6, 7, 8, 9]\n  contrasts: {A: [a - base (=)]}\n"
    [by_welch] = measure(load(tmp_path, text), nlls)
    assert by_welch.conclusion == "not known"
    plan = load(tmp_path, text + "by_blocks: true\n")
    [found] = measure(plan, nlls)
    paired = ttest_rel(nlls["a"], nlls["base"])
    assert found.p == pytest.approx(float(paired.pvalue))
    above = [x + 0.2 for x in nlls["a"]]
    same = float(ttest_rel(above, nlls["base"], alternative="greater").pvalue)
    assert found.p_same == pytest.approx(same)
    assert by_welch.block_interval == found.interval and found.block_interval is None
    expected = paired.confidence_interval()
    assert found.interval
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high))
    table = "\n".join(tabulate(plan, results(nlls)))
    assert (
        "seeds as blocks" not in table
        and "intervals and tests: each seed is a block: its trainings" in table
    )


def test_verdicts_are_those_of_the_corrected_p(tmp_path: Path) -> None:
    less = [2.984, 2.994, 2.974, 2.984]
    first = measure(load(tmp_path), {**NATS, "a": less})[0]
    p = float(ttest_ind(less, NATS["base"], equal_var=False).pvalue)
    assert first.p and p < 0.05 <= first.p and first.conclusion == "not known"


def test_sameness_is_corrected_too(tmp_path: Path) -> None:
    plan = load(tmp_path, PLAN.replace("- a - base", "- a - base (=)"))
    alike = [2.97, 2.99, 3.01, 3.03]
    first = measure(plan, {"a": alike, "base": alike})[0]
    sides = (
        ttest_ind([x + shift for x in alike], alike, equal_var=False, alternative=side).pvalue
        for shift, side in ((0.04, "greater"), (-0.04, "less"))
    )
    p = max(map(float, sides))
    assert p < 0.05 <= 2 * p, "b − base, without results, counts"
    assert first.p_same == pytest.approx(2 * p) and first.conclusion == "not known"


def test_a_margin_in_nats_is_for_nats_only(tmp_path: Path) -> None:
    plan = load(tmp_path)
    cells = index_cells(plan, results({**NATS, "b": NATS["base"]}))
    assert compare(plan.contrasts, cells, NLL)[1].p_same is not None
    assert compare(plan.contrasts, cells, CHRF)[1].p_same is None


def test_a_missing_seed_makes_a_contrast_incomplete(tmp_path: Path) -> None:
    plan = load(tmp_path)
    fewer = {**NATS, "a": NATS["a"][:3]}
    first = measure(plan, fewer)[0]
    assert first.conclusion == "not complete" and first.interval is first.p is None
    rows = [line.split() for line in tabulate(plan, results(fewer)) if line.startswith("a − base")]
    [likelihood, scores] = rows
    assert likelihood[3:] == ["3", "and", "4", "of", "4", *["–"] * 4, "not", "complete"]
    assert {*scores[3:]} == {"–"}, "nobody sees a difference before all planned seeds are there"


def test_the_tables(tmp_path: Path) -> None:
    plan, measured = load(tmp_path), results(NATS)
    other = {**measured["cells"][0], "system": "unplanned", "hardware": "another CPU"}
    measured["cells"].append(other)
    other_corpus = {"other": results({"a": [2.0, 2.1]})}
    lines = tabulate(plan, measured, other_corpus)
    assert "hardware: a CPU" in lines and "hardware: another CPU" not in lines, "of the plan"
    rows = [line for line in lines if line.startswith("d − a") and "[" in line]
    [row] = [line for line in rows if "estimate" not in line]
    assert row.rstrip().endswith("]"), "two seeds are enough for the bootstrap"
    [first] = [line for line in lines if line.startswith("a − base") and "better" in line]
    assert "−0.100 [" in first and first.split()[3] == "4"
    [line] = [line for line in lines if line.startswith("other/a − a") and "estimate" in line]
    assert "−0.855 [" in line
    said = " ".join(lines)
    assert (
        "corrected for the family's 3 contrasts, and 2 of these contrasts are complete; incomplete"
        in said
    )
    assert "below 0.04 nats; by Holm's method for all contrasts that have this test (1)" in said
    assert "no results yet: c − base" in said
    # Of base, a and b, which have all four seeds.
    assert re.search(r"NLL, 4 seeds: deviation within seeds 0\.00\d+ \(6 d\.f\.\)\. ", said)
    # a has a lower NLL and more chrF; d has a lower one and less.
    assert "scores differ where NLL does not (the interval does not contain 0): d − a (chrF" in said
    both = [each | {"test": each["valid"]} for each in results(NATS)["cells"]]
    text = "\n".join(tabulate(plan, {"cells": both}))
    assert "test NLL" in text and " (test NLL" not in text, "lower is better there, too"


def test_scores_disagree_with_what_nll_says_and_not_with_what_it_lacks(tmp_path: Path) -> None:
    plan, measured = load(tmp_path), results({"a": [3.0, 3.01, 3.0, 3.02], "base": NATS["base"]})
    said = "scores differ where NLL does not (the interval does not contain 0): a − base (chrF)"
    assert said in tabulate(plan, measured)
    measured["cells"][0]["valid"] = {}
    assert not [line for line in tabulate(plan, measured) if line.startswith("scores differ where")]


def test_a_plan_without_results_has_notes_only(tmp_path: Path) -> None:
    plan = load(tmp_path)
    tables = tabulate_plan(plan.contrasts, {})
    assert tables.tables == []
    names = "; ".join(contrast.name for contrast in plan.contrasts)
    assert tables.format() == f"no results yet: {names}"


def test_the_figure(tmp_path: Path) -> None:
    plan = load(tmp_path)
    cells = index_cells(plan, results(NATS), {"other": results({"a": [2.0, 2.1]})})
    picture = draw_contrasts(plan.contrasts, cells)["datasets"]
    assert [row["text"] for row in picture["headings"]] == ["A"], "c − base has no results"
    names = ["a against base", "b against base", "d against a", "a, of other against a"]
    assert [row["text"] for row in picture["names"]] == names
    verdicts = ["better", "the same", "not known", "not known"]
    assert [row["verdict"] for row in picture["means 0"]] == verdicts, "estimates have none"
    assert [row["verdict"] for row in picture["means 1"]][:2] == ["better", "not known"], "chrF"
    fewer = index_cells(plan, results({**NATS, "a": NATS["a"][:3]}))
    shown = draw_contrasts(plan.contrasts, fewer)["datasets"]["names"]
    assert [row["text"] for row in shown] == ["b against base", "d against a"], (
        "all seeds are there"
    )
    with pytest.raises(DataError, match="nothing to draw"):
        draw_contrasts(plan.contrasts, {})


def test_systems_with_different_subwords_are_compared_per_word(tmp_path: Path) -> None:
    plan = load(tmp_path, f"{PLAN}\nper_word: [A]\n")
    assert [contrast.per_word for contrast in plan.contrasts] == [True, True, False, True, True]
    nlls = {"a": [2.0, 2.02, 1.98, 2.0], "base": [3.0, 3.02, 2.98, 3.0]}
    found = results(nlls)
    for one in found["cells"]:
        one["subwords_per_word"] = 2.0 if one["system"] == "a" else 1.5
    first, _, third, *_ = compare(plan.contrasts, index_cells(plan, found), NLL)
    assert first.samples[0] == pytest.approx([4.0, 4.04, 3.96, 4.0])
    assert first.samples[1] == pytest.approx([4.5, 4.53, 4.47, 4.5])
    assert third.samples[1] == pytest.approx(nlls["base"])
    assert first.mean == pytest.approx(-0.5)
    lines = tabulate(plan, found)
    assert any("NLL of A: per word" in line for line in lines)
    assert "−0.500 [" in next(line for line in lines if line.startswith("a − base"))
    picture = draw_contrasts(plan.contrasts, index_cells(plan, found))
    assert [row["text"] for row in picture["datasets"]["headings"]] == ["A, NLL per word"]
    [shown] = [line for line in lines if line.startswith("NLL per word, 4 seeds: deviation")]
    assert "seeds 0.0058 (3 d.f.). Seeds explain 96 % of" in shown
    del found["cells"][0]["subwords_per_word"]
    with pytest.raises(DataError, match="^a, seed 6: the results lack subwords_per_word; run"):
        compare(plan.contrasts, index_cells(plan, found), NLL)


def test_subwords_are_counted_with_sentence_ends(tmp_path: Path) -> None:
    corpus = load_corpus(CONFIGS / "multi30k_tiny_en_de_3625")
    for part, text in (("words", "ein Haus\n\n"), ("pieces", "▁e in ▁Haus\n\n")):
        path = tmp_path / "corpora" / corpus.name / part / "valid.de"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    assert measure_subwords_per_word(tmp_path, corpus) == 2.5


def test_only_what_was_planned_counts(tmp_path: Path) -> None:
    plan = load(tmp_path)
    with pytest.raises(
        DataError, match=r"^base, seed 6: was trained with optimization\.lr=1, which"
    ):
        index_cells(plan, results(NATS, overrides={"optimization.lr": 1}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("family: [1]", r"family: expected names and values, not \[1\]"),
        ("family: {seeds: [x], contrasts: {}}", r"family: seeds: \['x'\] is not of type list\[int"),
        ("family: {seeds: [-1], contrasts: {}}", "family: seeds: give whole numbers from 0, each"),
        ("family: {seeds: [1, 1], contrasts: {A: [a - b]}}", "family: seeds: give whole numbers"),
        ("family: {seeds: [], contrasts: {A: [a - b]}}", "family: seeds: give whole numbers"),
        ("family: {contrasts: {A: [a - b]}}", "family: the key 'seeds' is missing"),
        ("family: {seeds: [1], contrasts: {A: [a - a]}}", "a - a: compare two different systems"),
        ("margin: 0.1", "the plan has no contrasts; list contrasts under family or estimates"),
        (
            "family: {seeds: [1], contrasts: {A: []}}",
            "the plan has no contrasts; list contrasts under family",
        ),
        ("family: {seeds: [1], contrasts: {A: x}}", "family: contrasts: {'A': 'x'} is not of type"),
        ("family: {seeds: [1], contrasts: {A: [a-b]}}", "'a-b'; expected SYSTEM - SYSTEM"),
        ("family: {seeds: [1], contrasts: {A: [a - b (=)]}}", r"\(=\) needs a margin above 0"),
        ("margin: x", "margin: 'x' is not of type int"),
        ("margin: .nan", "margin: give a number from 0"),
        ("per_word: [A]", "per_word: A is not a heading of contrasts"),
        (f"{PLAN}per_word: 3", "per_word: 3 is not of type"),
        (f"{PLAN}names: [a]", "names: .* is not of type"),
        (f"{PLAN}names: {{a: 3}}", "names: .* is not of type"),
        (f"{PLAN}names: {{x: y}}", "names: no contrast has the system x"),
        ("margin: 1\nfamilies: {}", "unknown key 'families'; known are margin, family, "),
        ("estimates: {seeds: [1], contrasts: {A: [a - b (=)]}}", "only contrasts of the family"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"^\S+_plan\.yaml: .*{message}"):
        load(tmp_path, text)


def test_our_plans_name_known_systems() -> None:
    for path in CONFIGS.glob("*/_plan.yaml"):
        known = load_corpus(path.parent).known_systems()
        for system in load_plan(path.parent).list_trainings():
            assert system.partition(":")[0] in known, system


@pytest.mark.parametrize(
    ("corpus", "count"), [("multi30k_tiny_en_de_3625", 19), ("atis_en_tr", 12)]
)
def test_our_families_are_those_of_the_page(corpus: str, count: int) -> None:
    page = (CONFIGS.parent / "study" / "plan.md").read_text(encoding="utf-8")
    family = [contrast for contrast in load_plan(CONFIGS / corpus).contrasts if contrast.tested]
    for contrast in family:
        names = (re.sub(rf"{corpus}_(\w+)/(\w+)", r"\2_\1", name) for name in contrast.systems)
        name = " − ".join(f"`{name}`" for name in names)
        same = " .=." if contrast.margin else ""
        assert re.search(rf"{re.escape(name)}{same}( \||,)", page), name
    assert len({*family}) == count


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = "multi30k_tiny_en_de_3625"
    assert main([corpus, "--plan", "lpsi", "transformer", "alibi", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    trained = [line for line in printed.splitlines() if line.endswith(": train")]
    assert len(trained) == 13 and "== alibi, seed 8: train" in trained
    assert "== alibi, seed 9: train" not in trained
    assert main([corpus, "--plan", "lpsi_tuned", "--dry-run"]) == 0  # a name of the plan's own
    assert "== lpsi:model.dropout=0.4, seed 6: train" in capsys.readouterr().out
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results({"lpsi": NATS["a"], "constant_gate": NATS["a"]})))
    assert main([corpus, "--plan", "--table", "--markdown", "--results", str(path)]) == 0
    assert "| constant_gate − lpsi | 4 of 5 | not complete |" in capsys.readouterr().out
    assert main([corpus, "--plan", "dbsa", "--table"]) == 1
    assert "dbsa: not in" in capsys.readouterr().err
    assert main([corpus, "--plan", "model.dropout=0.1"]) == 1
    assert "--plan trains systems with the planned settings" in capsys.readouterr().err
