import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from lab.tests.evaluation.test_results import baseline, cell
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.cli.recipe import main
from syncattn_lab.evaluation.contrast import Contrast
from syncattn_lab.evaluation.differences import Difference
from syncattn_lab.evaluation.intervals import Interval, fit_blocks
from syncattn_lab.evaluation.measures import BLEU, CHRF, NLL, Measure
from syncattn_lab.evaluation.results_file import load_results
from syncattn_lab.evaluation.table_rows import TableRow, list_contrasts, make_rows
from syncattn_lab.recipes.figures import draw_rows
from syncattn_lab.report import charts, picture_files
from syncattn_lab.report.forest import draw_forest
from syncattn_lab.report.in_words import compare_rows, say_differences

RESULTS = Path(__file__).parents[3] / "study" / "results"


def rows_of(cells: list[Any], systems: list[str]) -> list[TableRow]:
    return make_rows({"cells": cells}, systems, None, baseline)


def test_systems_are_in_their_first_group():
    cells = [cell(name, seed, 10.0 + seed) for name in ("base", "a", "b", "c") for seed in (1, 2)]
    groups = {"one": ["base", "b", "a"], "two": ["a", "nothing"]}
    contrasts = list_contrasts(rows_of(cells, ["base", "c", "a", "b"]), groups, str.upper)
    assert [(one.system, one.baseline, one.group) for one in contrasts] == [
        ("a", "base", "ONE, against BASE"),
        ("b", "base", "ONE, against BASE"),
        ("c", "base", "against BASE"),
    ]
    assert not any(one.is_planned for one in contrasts)


def list_panels(cells: list[Any], systems: list[str]) -> list[int]:
    """Return how many means each panel has."""
    data = draw_rows(rows_of(cells, systems), {})["datasets"]
    return [len(rows) for name, rows in data.items() if name.startswith("means ")]


def test_a_figure_has_the_measures_and_systems_with_results():
    cells = [cell(name, seed, 10.0 + seed) for name in ("base", "a") for seed in (1, 2)]
    assert list_panels(cells, ["base", "a"]) == [1], "BLEU alone"
    for one in cells:
        one["valid"] = {"nll_loss": 2.0}
    assert list_panels(cells, ["base", "a"]) == [1, 1]
    nothing = cell("b", 1, 0.0) | {"scores": {}}
    assert list_panels([*cells, cell("a", 3, 1.0), nothing], ["base", "a", "b"]) == [1, 1]
    compared = compare_rows(rows_of([*cells, nothing], ["base", "a", "b"]))
    assert [(one.name, one.baseline, one.difference) for one in compared] == [("a", "base", 0.0)]
    one_seed = [cell("base", 1, 10.0), cell("ours", 1, 11.0)]
    [row] = draw_rows(rows_of(one_seed, ["ours"]), {})["datasets"]["means 0"]
    assert row["low"] == row["high"] == row["mean"] == 1.0, "no interval"
    with pytest.raises(DataError, match="nothing to draw: no system has a baseline with results"):
        draw_rows(rows_of(cells, ["base"]), {})


def test_the_heading_and_the_key_say_what_is_there():
    contrast = Contrast("ours", "base")
    one = Difference(contrast, BLEU, {1: 2.0, 2: 3.0}, {1: 1.0, 2: 1.5})
    drawn = draw_forest({BLEU: [one]}, lambda contrast: contrast.name)
    assert drawn["datasets"]["headings"] == []
    [name] = drawn["datasets"]["names"]
    assert (name["text"], name["y"]) == ("ours − base", -5), "at the top"
    assert drawn["title"]["text"][0] == "Line: 95 % interval over seeds."
    blocks = fit_blocks([[2.0, 3.0], [1.0, 1.5]])
    drawn = draw_forest({BLEU: [replace(one, blocks=blocks)]}, lambda contrast: contrast.name)
    assert drawn["title"]["text"][0] == "Line: 95 % interval over seeds. Band: seeds as blocks."


def test_colours_are_verdicts(tmp_path):
    sure, wide = Interval(1.0, 0.5, 1.5), Interval(0.75, -0.5, 2.0)
    numbers: dict[str, dict[Measure, tuple[list[float], Interval | None, float | None]]] = {
        "ahead": {BLEU: ([0.5, 1.5], sure, 0.04)},
        "behind": {BLEU: ([-1.25], None, 0.02), NLL: ([0.1], None, None)},
        "open": {BLEU: ([0.75], wide, 0.5), NLL: ([0.25], sure, 0)},
        "corrected": {BLEU: ([0.625], sure, 0.05)},
        "far away": {BLEU: ([-50.0], Interval(-50.0, -51.0, -49.0), None)},
        "a" * 105: {BLEU: ([0.5], None, None)},
    }

    def list_differences(measure: Measure) -> list[Difference]:
        found = []
        for name, by_measure in numbers.items():
            contrast = Contrast(name, "base", "against base")
            ours, interval, p = by_measure.get(measure, ([], None, None))
            by_seed = dict(enumerate(ours))
            found.append(Difference(contrast, measure, by_seed, {0: 0.0}, interval, p))
        return found

    found = {measure: list_differences(measure) for measure in (BLEU, NLL)}
    picture = draw_forest(found, lambda contrast: contrast.system)
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
    _, sentence = say_differences(compare_rows(rows))
    said = f"All {len(body)} differences to the baseline, transformer, may be chance: "
    assert sentence.startswith(said)


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
