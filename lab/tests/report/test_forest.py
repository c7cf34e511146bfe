import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from scipy.stats import ttest_ind

from lab.tests.evaluation.test_results import baseline, cell
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.cli.recipe import main
from syncattn_lab.evaluation.differences import (
    Difference,
    Group,
    Line,
    compare_bleu,
    group_rows,
    make_difference,
)
from syncattn_lab.evaluation.intervals import Interval
from syncattn_lab.evaluation.measures import BLEU, CHRF, NLL
from syncattn_lab.evaluation.results_file import load_results
from syncattn_lab.evaluation.results_tables import make_rows
from syncattn_lab.report import charts, picture_files
from syncattn_lab.report.forest import draw_forest
from syncattn_lab.report.in_words import say_differences

RESULTS = Path(__file__).parents[3] / "study" / "results"


def test_a_difference_is_to_the_mean_of_the_baseline():
    found = make_difference(BLEU, {1: 3.0, 2: 5.0}, {1: 1.0, 2: 2.0})
    assert found is not None and found.seeds == [1.5, 3.5] and found.mean == 2.5
    expected = ttest_ind([3.0, 5.0], [1.0, 2.0], equal_var=False)
    low, high = expected.confidence_interval(0.95)
    assert found.interval and (found.interval.low, found.interval.high) == pytest.approx(
        (low, high)
    )
    assert make_difference(BLEU, {}, {1: 1.0}) is make_difference(BLEU, {1: 1.0}, {}) is None


def rows_of(cells: list[Any], systems: list[str]) -> Any:
    return make_rows({"cells": cells}, systems, None, baseline)


def test_systems_are_in_their_first_group():
    cells = [cell(name, seed, 10.0 + seed) for name in ("base", "a", "b", "c") for seed in (1, 2)]
    rows = rows_of(cells, ["base", "a", "b", "c"])
    groups = {"one": ["base", "b", "a"], "two": ["a", "nothing"]}
    measures, found = group_rows(rows, groups)
    assert [(g.title, [line.name for line in g.lines]) for g in found] == [
        ("one, against base", ["a", "b"]),
        ("against base", ["c"]),
    ]
    assert measures == [BLEU]
    for one in cells:
        one["valid"] = {"nll_loss": 2.0}
    measures, found = group_rows(rows_of(cells, ["base", "a"]), {})
    assert measures == [NLL, BLEU]
    found = group_rows(rows_of([*cells[:3], cell("a", 3, 1.0)], ["base", "a"]), {})[1]
    assert [len(line.differences) for line in found[0].lines] == [2]
    one_seed = [cell("base", 1, 10.0), cell("ours", 1, 11.0)]
    [group] = group_rows(rows_of(one_seed, ["ours"]), {})[1]
    assert group.lines[0].differences == [Difference(BLEU, [1.0], within=1.0)], "no interval"
    with pytest.raises(DataError, match="nothing to draw: no system has a baseline with results"):
        group_rows(rows_of(cells, ["base"]), {})


def test_colours_are_verdicts(tmp_path):
    sure, wide = Interval(1.0, 0.5, 1.5), Interval(0.75, -0.5, 2.0)
    lines = [
        Line("ahead", [Difference(BLEU, [0.5, 1.5], sure, 0.04), None]),
        Line("behind", [Difference(BLEU, [-1.25], None, 0.02), Difference(NLL, [0.1])]),
        Line("open", [Difference(BLEU, [0.75], wide, 0.5), Difference(NLL, [0.25], sure, 0)]),
        Line("corrected", [Difference(BLEU, [0.625], sure, 0.05), None]),
        Line("far away", [Difference(BLEU, [-50.0], Interval(-50.0, -51.0, -49.0)), None]),
        Line("a" * 105, [Difference(BLEU, [0.5]), None]),
    ]
    picture = draw_forest([BLEU, NLL], [Group("against base", lines)])
    picture_files.save(picture, tmp_path / "f.svg")
    root: Any = ElementTree.parse(tmp_path / "f.svg").getroot()
    texts = [mark.text for mark in root.iter() if mark.tag.endswith("text") and mark.text]
    by_mean = {
        mean[1]: mark.get("fill")
        for mark in root.iter()
        if (mean := re.search(r"mean: (\S+?);", mark.get("aria-label", "")))
    }
    assert by_mean == {
        **{"1": charts.RIGHT, "−1.25": charts.WRONG, "0.75": charts.GOLD, "0.5": charts.GOLD},
        **{"0.1": charts.GOLD, "0.25": charts.WRONG},  # a higher NLL is worse
        "0.625": charts.GOLD,  # its interval is beside 0, and its corrected p is not below .05
    }
    assert "← −50" in texts and "far away" in texts and "against base" in texts
    assert "a" * 103 + "…" in texts
    assert "NLL in nats, difference (lower is better)" in texts
    [seeds] = [rows for name, rows in picture["datasets"].items() if name == "seeds 0"]
    assert [row["value"] for row in seeds] == [0.5, 1.5, -1.25, 0.75, 0.625, 0.5]


def test_table_figure_and_report_give_one_verdict(tmp_path, capsys):
    corpus, figure = "multi30k_tiny_en_de_3625", tmp_path / "g.svg"
    path = RESULTS / f"{corpus}.json"
    command = [corpus, "--table", f"--results={path}", "@parsing", "@parents"]
    assert main([*command, f"--figure={figure}"]) == 0
    table = capsys.readouterr().out.split("\n\n")[1].splitlines()
    head, *body = (re.split(r"\s{2,}", line) for line in table)
    in_table: dict[str, list[str]] = {}
    for measure in (NLL, CHRF, BLEU):
        at = head.index(f"Δ {measure.name}")
        assert head[at + 2] == "p Holm"
        for row in body:
            sure = float(row[at + 2].replace("<", "")) < 0.05
            positive = row[at].startswith("+")
            verdict = "better" if positive == measure.higher_is_better else "worse"
            in_table.setdefault(measure.name, []).append(verdict if sure else "not known")
    assert "better" in in_table["NLL"] and {*in_table["BLEU"]} == {"not known"}

    colours = {"better": charts.RIGHT, "worse": charts.WRONG, "not known": charts.GOLD}
    root: Any = ElementTree.parse(figure).getroot()
    dots = [mark for mark in root.iter() if "mean: " in mark.get("aria-label", "")]
    expected = [colours[verdict] for column in in_table.values() for verdict in column]
    assert [dot.get("fill") for dot in dots] == expected

    systems = [row[0] for row in body]
    rows = make_rows(load_results(path), systems, None, lambda _: "transformer")
    [sentence] = say_differences(compare_bleu(rows), over_seeds=True)
    assert sentence.startswith(f"All {len(body)} differences to transformer may be chance; ")


def test_a_recipe_draws_its_results(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["builtin_en_de", "@pascal", "@lpsi", "--table"]
    command.append(f"--results={RESULTS / 'builtin_en_de.json'}")
    assert main([*command, "--figure=f.svg"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("system ") and err == "f.svg: the differences to the baseline\n"
    svg = Path("f.svg").read_text(encoding="utf-8")
    for text in (
        "PASCAL, its rivals and controls, against the Transformer",
        "LPSI and its rivals, against the Transformer",
        "SynchMSE",
        "← −52.4",
    ):
        assert f">{text}</text>" in svg
    assert main([*command, "--figure=f.gif"]) == 1
    out, err = capsys.readouterr()
    assert not out and err == "error: f.gif: pictures are .svg, .png or .pdf; choose one\n"
    alone = [command[0], "transformer", *command[3:], "--figure=g.svg"]
    assert main(alone) == 1
    assert "error: nothing to draw: no system has a baseline" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["f.svg"]
