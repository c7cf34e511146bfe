from typing import Any

import vl_convert

from syncattn_lab.printed.training_log import Point
from syncattn_lab.report.curves import training_charts


def points(values: dict[int, float], measure: str = "loss", part: str = "valid") -> list[Point]:
    return [Point(measure, part, update, value) for update, value in values.items()]


def rows(chart: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = chart.specification["datasets"]["rows"]
    return found


def test_mean_and_range_of_the_updates_that_all_seeds_have():
    seeds = [points({100: 9.0, 200: 5.0, 300: 4.0}), points({100: 8.0, 200: 6.0})]
    [chart] = training_charts({"A": seeds, "B": [points({100: 7.0, 300: 4.5})]}, ["A", "B", "C"])
    assert chart.title == "Validation loss" and chart.note.startswith("Mean of the seeds, and")
    assert [tuple(row.values()) for row in rows(chart)] == [
        ("A", 100, 8.5, 8.0, 9.0, 2),
        ("A", 200, 5.5, 5.0, 6.0, 2),
        ("B", 100, 7.0, 7.0, 7.0, 1),
        ("B", 300, 4.5, 4.5, 4.5, 1),
    ]
    svg = vl_convert.vegalite_to_svg(chart.specification)
    legend = svg[svg.index("role-legend") :]
    assert ">A</text>" in legend and ">B</text>" in legend and ">C</text>" not in legend
    [alone] = training_charts({"A": [points({100: 7.0})]}, ["A"])
    assert "role-legend" not in vl_convert.vegalite_to_svg(alone.specification)


def test_titles_are_words_and_validation_comes_first():
    found = [
        *points({5: 1.0}, "loss", "train"),
        *points({5: 2.0}, "loss"),
        *points({5: 3.0}, "sync_mse_loss", "train"),
        *points({5: 60.0}, "src_uas"),
        *points({5: 1.0}, "my_own_loss"),
        *points({5: 9.0}, "total_loss"),  # a sum of the others
    ]
    charts = training_charts({"A": [found]}, ["A"])
    assert [chart.title for chart in charts] == [
        *("Validation loss", "Training: SynchMSE loss"),
        *("Validation: parents of the source found (%)", "Validation: my own loss"),
    ]
    assert [row["value"] for row in rows(charts[0])] == [2.0]
    assert not any(chart.note for chart in charts)


def test_the_steep_beginning_lies_outside():
    values = {update: 4.0 + 1000 / update for update in range(10, 1000, 10)}
    [chart] = training_charts({"A": [points(values)]}, ["A"])
    low, high = chart.specification["layer"][1]["encoding"]["y"]["scale"]["domain"]
    assert low < values[990] and values[300] > high > values[330] and len(rows(chart)) == 99
    assert chart.note == "The beginning lies outside."
    [flat] = training_charts({"A": [points({10: 4.0})]}, ["A"])
    low, high = flat.specification["layer"][1]["encoding"]["y"]["scale"]["domain"]
    assert low < 4 < high and not flat.note


def test_seeds_that_share_no_update_have_no_curve():
    [chart] = training_charts({"A": [points({1: 4.0}), points({2: 4.0})]}, ["A"])
    assert rows(chart) == [] and "<svg" in vl_convert.vegalite_to_svg(chart.specification)
