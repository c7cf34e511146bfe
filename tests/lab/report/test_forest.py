"""Differences to the baseline, from results to the picture."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from scipy.stats import ttest_ind

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.lab.cli.recipe import main
from syncattn_fairseq.lab.evaluation.differences import (
    Difference,
    Group,
    Line,
    Measure,
    group_rows,
)
from syncattn_fairseq.lab.evaluation.results_tables import make_rows
from tests.lab.evaluation.test_results import baseline, cell

pytest.importorskip("altair", reason="needs the extra viz")
from syncattn_fairseq.lab.report import charts, picture_files
from syncattn_fairseq.lab.report.forest import draw_forest

RESULTS = Path(__file__).parents[3] / "docs" / "results"


def test_a_difference_is_to_the_mean_of_the_baseline() -> None:
    found = Difference.of([3.0, 5.0], [1.0, 2.0])
    assert found is not None and found.seeds == [1.5, 3.5] and found.mean == 2.5
    expected = ttest_ind([3.0, 5.0], [1.0, 2.0], equal_var=False).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert Difference.of([], [1.0]) is Difference.of([1.0], []) is None


def rows_of(cells: list[Any], systems: list[str]) -> Any:
    return make_rows({"cells": cells}, systems, None, baseline)


def test_systems_are_in_their_first_group() -> None:
    cells = [cell(name, seed, 10.0 + seed) for name in ("base", "a", "b", "c") for seed in (1, 2)]
    rows = rows_of(cells, ["base", "a", "b", "c"])
    groups = {"one": ["base", "b", "a"], "two": ["a", "nothing"]}
    measures, found = group_rows(rows, groups)
    assert [(g.title, [line.name for line in g.lines]) for g in found] == [
        ("one, against base", ["a", "b"]),
        ("against base", ["c"]),
    ]
    assert [measure.title for measure in measures] == ["BLEU", "validation loss"]
    for one in cells:
        one["valid"] = {}
    measures, found = group_rows(rows_of(cells, ["base", "a"]), {})
    assert [measure.title for measure in measures] == ["BLEU"]
    assert [len(line.differences) for line in found[0].lines] == [1]
    with pytest.raises(DataError, match="nothing to draw: no system has a baseline with results"):
        group_rows(rows_of(cells, ["base"]), {})


def texts_and_colours(picture: dict[str, Any], path: Path) -> tuple[list[str], dict[str, str]]:
    """Return all texts, and the colour of each mean by its words."""
    picture_files.save(picture, path)
    root: Any = ElementTree.parse(path).getroot()
    texts = [mark.text for mark in root.iter() if mark.tag.endswith("text") and mark.text]
    marks = (mark for mark in root.iter() if "mean: " in mark.get("aria-label", ""))
    return texts, {mark.get("aria-label"): mark.get("fill") for mark in marks}


def test_only_intervals_beside_zero_have_a_colour(tmp_path: Path) -> None:
    lines = [
        Line("ahead", [Difference([0.5, 1.5], 1.0, (0.5, 1.5)), None]),
        Line("behind", [Difference([-1.5], -1.25, (-2.0, -0.5)), Difference([0.1], 0.1, None)]),
        Line("open", [Difference([0.75], 0.75, (-0.5, 2.0)), Difference([0.2], 0.25, (0.1, 0.4))]),
        Line("far away", [Difference([-50.0], -50.0, (-51.0, -49.0)), None]),
        Line("a" * 60, [Difference([1.0], 0.5, None), None]),
    ]
    measures = [Measure("BLEU"), Measure("validation loss", higher_is_better=False)]
    picture = draw_forest(measures, [Group("against base", lines)])
    texts, colours = texts_and_colours(picture, tmp_path / "f.svg")
    by_mean = {re.findall(r"mean: (\S+?);", label)[0]: c for label, c in colours.items()}
    assert by_mean == {
        **{"1": charts.RIGHT, "−1.25": charts.WRONG, "0.75": charts.GOLD, "0.5": charts.GOLD},
        **{"0.1": charts.GOLD, "0.25": charts.WRONG},  # a higher loss is worse
    }
    assert "← −50" in texts and "far away" in texts and "against base" in texts
    assert "a" * 47 + "…" in texts
    assert "validation loss, difference (lower is better)" in texts
    [seeds] = [rows for name, rows in picture["datasets"].items() if name == "seeds 0"]
    assert [row["value"] for row in seeds] == [0.5, 1.5, -1.5, 0.75, 1.0]


def test_a_planned_contrast_has_a_colour_by_its_corrected_p(tmp_path: Path) -> None:
    ahead = Difference([0.5, 1.5], 1.0, (0.5, 1.5), p=0.04)
    lines = [Line("a", [ahead]), Line("b", [replace(ahead, mean=0.75, p=0.05)])]
    picture = draw_forest([Measure("NLL", higher_is_better=False)], [Group("A", lines)])
    _, colours = texts_and_colours(picture, tmp_path / "f.svg")
    assert {*colours.values()} == {charts.WRONG, charts.GOLD}
    assert "Corrected for all planned contrasts" in " ".join(picture["title"]["text"])


def test_a_recipe_draws_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["builtin_en_de", "@pascal", "@lpsi", "--table"]
    command.append(f"--results={RESULTS / 'builtin_en_de.json'}")
    assert main([*command, "--figure=f.svg"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("\nsystem ") and err == "f.svg: the differences to the baseline\n"
    svg = Path("f.svg").read_text(encoding="utf-8")
    for text in (
        "pascal, against transformer",
        "lpsi, against transformer",
        "synch_mse",
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


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    measures, groups = group_rows(
        rows_of([cell("base", 1, 10.0), cell("ours", 1, 11.0)], ["ours"]), {}
    )
    assert groups[0].lines[0].differences[0] == Difference([1.0], 1.0, None)
    _, colours = texts_and_colours(draw_forest(measures, groups), tmp_path / "f.png.svg")
    assert {*colours.values()} == {charts.GOLD}
