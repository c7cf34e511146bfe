"""Draw forest plots of how far systems are from their baselines, with a dot for each seed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from syncattn_fairseq.base.errors import DataError

from ..evaluation.contrast import Contrast
from ..evaluation.differences import Difference
from ..evaluation.measures import Measure
from . import charts
from .charts import GOLD, INK, RIGHT, WRONG
from .viz import alt

_ROW, _GAP = 20, 6
"""Pixels of height for a heading, a name or the line below it; pixels between groups."""
_BELOW = 6
"""Pixels between the line of a mean and the dots of its seeds below."""
_FAR = 5
"""Differences of more than this many times the median are drawn as arrows at the edge."""
_LONGEST_NAME = 52
"""The most characters of a name for each panel; longer names are cut."""
_WIDTH, _FIRST_WIDTH, _OTHER_WIDTH = 500, 320, 250
"""Width in pixels of a panel that stands alone, of the first of several, and of the others."""
_SIZE, _SMALL_SIZE = 15, 12
"""Font size of a panel that stands alone, which a phone shrinks, and of several panels."""
_KEY = [
    "Small dots: seeds of the first, minus the mean of the second.",
    "Blue: better. Orange, square: worse (both corrected).",
    "Grey: may be chance, or untested.",
]


def draw_forest(
    found: Mapping[Measure, Sequence[Difference]], say: Callable[[Contrast], str]
) -> dict[str, Any]:
    """Draw a forest plot: a panel for each measure, with the mean difference of each contrast.

    Contrasts of a group are together, below its heading. Dots show the differences of seeds.

    Args:
        found: the differences of the same contrasts in each measure. Contrasts and measures without
            results are left out.
        say: returns the name of a contrast.

    Returns:
        The Vega-Lite specification, with its data.

    Raises:
        DataError: there are no results.
    """
    columns = {measure: column for measure, column in found.items() if _list_complete(column)}
    if not columns:
        raise DataError(
            "nothing to draw: no system has a baseline with results (of all seeds, in a plan)"
        )
    rows = [row for row in zip(*columns.values(), strict=True) if _list_complete(row)]
    lines, headings, height = _place([row[0].contrast for row in rows])
    data: dict[str, list[dict[str, Any]]] = {
        "headings": headings,
        "names": [],
        "zero": [{"zero": 0}],
    }
    for contrast, y in lines.items():
        text = _shorten(say(contrast), len(columns))
        data["names"].append({"text": text, "y": y - _ROW + 1, "line": y})
    panels: list[Any] = []
    for number, (measure, column) in enumerate(columns.items()):
        shown = sorted(_list_complete(column), key=lambda one: lines[one.contrast])
        domain = _domain(shown)
        data |= _rows(number, {lines[one.contrast]: one for one in shown}, domain)
        panels.append(_panel(number, len(columns), measure, height, domain))
    key = ["Line: 95 % interval over seeds.", *_KEY]
    if any(one.block_interval for column in columns.values() for one in column):
        key[0] = "Line: 95 % interval over seeds. Band: seeds as blocks."
    size = _SIZE if len(columns) == 1 else _SMALL_SIZE
    title = alt.TitleParams(key, fontSize=size - 1, fontWeight="normal", color=GOLD)
    whole: Any = alt.hconcat(*panels, spacing=36)
    return charts.fill(charts.dress(whole.properties(title=title)), data)


def _list_complete(differences: Iterable[Difference]) -> list[Difference]:
    return [one for one in differences if one.is_complete]


def _place(contrasts: Iterable[Contrast]) -> tuple[dict[Contrast, int], list[dict[str, Any]], int]:
    """Return the vertical position of each contrast, the rows of headings, and the total height."""
    groups: dict[str, list[Contrast]] = {}
    for contrast in contrasts:
        groups.setdefault(contrast.heading, []).append(contrast)
    lines: dict[Contrast, int] = {}
    headings: list[dict[str, Any]] = []
    y = 0
    for heading, group in groups.items():
        y += _GAP if y else 0
        if heading:
            headings.append({"text": heading, "y": y})
            y += _ROW
        for contrast in group:
            lines[contrast] = y + _ROW - _BELOW
            y += 2 * _ROW
    return lines, headings, y


def _rows(
    number: int, lines: Mapping[int, Difference], domain: tuple[float, float]
) -> dict[str, list[dict[str, Any]]]:
    """Return the data sets of a panel; means outside the domain become arrows at its edge.

    Args:
        number: the number of the panel.
        lines: the differences by the vertical position of their lines.
        domain: the lowest and the highest value that are shown.
    """
    means: list[dict[str, Any]] = []
    seeds: list[dict[str, Any]] = []
    far: list[dict[str, Any]] = []
    first, last = domain
    for y, difference in lines.items():
        mean = difference.mean
        low, high = _ends(difference)
        row = {"y": y, "mean": mean, "verdict": difference.verdict}
        if first <= mean <= last:
            ends = {"low": max(low, first), "high": min(high, last)}
            if band := difference.block_interval:
                ends |= {"from": max(band.low, first), "to": min(band.high, last)}
            means.append(row | ends)
            inside = (value for value in difference.seeds if first <= value <= last)
            seeds += [{"y": y + _BELOW, "value": value} for value in inside]
        else:
            left = mean < first
            text = f"{mean:+.3g}".replace("-", "−")
            text = f"← {text}" if left else f"{text} →"
            far.append({**row, "edge": first if left else last, "left": left, "text": text})
    return {f"means {number}": means, f"seeds {number}": seeds, f"far {number}": far}


def _ends(difference: Difference) -> tuple[float, float]:
    """Return the ends of the confidence interval of a mean, or the mean twice without one."""
    interval = difference.interval
    return (interval.low, interval.high) if interval else (difference.mean, difference.mean)


def _domain(differences: Iterable[Difference]) -> tuple[float, float]:
    """Return the range of a panel's axis, in which all but far outliers fit."""
    shown = [[*one.seeds, *_ends(one)] for one in differences]
    ranges = [(min(values), max(values)) for values in shown]
    far = _FAR * median(max(abs(low), abs(high)) for low, high in ranges)
    near = [ends for ends in ranges if max(map(abs, ends)) <= far]
    low, high = min(0.0, *(low for low, _ in near)), max(0.0, *(high for _, high in near))
    room = 0.04 * (high - low) or 1.0
    return low - room, high + room


def _panel(
    number: int, panels: int, measure: Measure, height: int, domain: tuple[float, float]
) -> Any:
    """Return the chart of a measure's panel; the first panel shows the names of the contrasts."""
    size, width = _SMALL_SIZE, _FIRST_WIDTH if number == 0 else _OTHER_WIDTH
    if panels == 1:
        size, width = _SIZE, _WIDTH
    better = "higher" if measure.higher_is_better else "lower"
    name = f"{measure.name} in {measure.unit}" if measure.unit else measure.name
    axis = alt.Axis(
        title=f"{name}, difference ({better} is better)",
        tickCount=5,
        grid=False,
        labelFontSize=size - 1,
        titleFontSize=size - 1,
    )

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", axis=axis, scale=alt.Scale(domain=domain, nice=False))

    y = charts.pixels("y")
    verdicts = ["better", "worse", "the same", "not known"]
    colours = alt.Scale(domain=verdicts, range=[RIGHT, WRONG, GOLD, GOLD])
    shapes = alt.Scale(domain=verdicts, range=["circle", "square", "circle", "circle"])
    colour = alt.Color("verdict:N", legend=None, scale=colours)
    shape = alt.Shape("verdict:N", legend=None, scale=shapes)
    means = alt.Chart(alt.NamedData(f"means {number}"))
    seeds = alt.Chart(alt.NamedData(f"seeds {number}"))
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(color=INK, opacity=0.45)
    dots = means.mark_point(filled=True, size=62, opacity=1)
    layers = [
        zero.encode(x=x("zero")),
        seeds.mark_point(filled=True, size=16, color=INK, opacity=0.35).encode(x=x("value"), y=y),
        means.mark_rule(strokeWidth=8, opacity=0.2).encode(x=x("from"), x2="to", y=y, color=colour),
        means.mark_rule(strokeWidth=2).encode(x=x("low"), x2="high", y=y, color=colour),
        dots.encode(x=x("mean"), y=y, color=colour, shape=shape),
    ]
    far = alt.Chart(alt.NamedData(f"far {number}"))
    sides: list[tuple[str, Any, int]] = [("datum.left", "left", 3), ("!datum.left", "right", -3)]
    for condition, align, dx in sides:
        text = far.transform_filter(condition).mark_text(align=align, fontSize=size - 1, dx=dx)
        layers.append(text.encode(x=x("edge"), y=y, text="text:N", color=colour))
    weights: list[tuple[str, Any]] = [("names", "normal"), ("headings", "bold")]
    for name, weight in weights if number == 0 else ():
        text = alt.Chart(alt.NamedData(name)).mark_text(
            align="left", baseline="top", fontSize=size, fontWeight=weight, color=INK
        )
        layers.append(text.encode(x=alt.value(0), y=y, text="text:N"))
    panel: Any = alt.layer(*layers)
    return panel.properties(width=width, height=height)


def _shorten(name: str, panels: int) -> str:
    longest = _LONGEST_NAME * panels
    return name if len(name) <= longest else name[: longest - 1] + "…"
