"""Charts of the scores on the whole test set, each a complete Vega-Lite specification."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..evaluation.length import FEWEST
from ..evaluation.scoring import SystemScore
from .charts import INK, dress
from .viz import alt

COLOURS = ("#0b7285", "#9c36b5", "#74901c", "#a61e4d", "#8d6e3f", "#4c3fb5", "#2f9e74", "#868e96")
"""Of systems: neither the blue of what is right nor the orange of what is wrong."""


#: ``11-20 (30)`` is on two lines, since a phone has no room for it on one.
_FLAT = alt.Axis(labelAngle=0, labelExpr="split(datum.label, ' ')")
_LEFT_ONLY = " Only heads to the left count: the decoder sees no future."


@dataclass(frozen=True)
class Chart:
    """A chart under a heading."""

    title: str
    note: str
    specification: dict[str, Any]


def measured_charts(scores: Mapping[str, SystemScore]) -> list[Chart]:
    """Draw scores by length, distance, label or layer, except those that were not measured."""
    names = list(scores)
    charts = [_by_length(scores)]
    charts.append(
        _points(
            "AER by layer",
            "Alignment error rate of every decoder layer's cross-attention; lower is better. 95 % "
            "intervals over sentences.",
            "decoder layer",
            "AER",
            (
                _Point(
                    name,
                    str(layer),
                    100 * alignment.aer,
                    (
                        100 * (alignment.aer - alignment.margin),
                        100 * (alignment.aer + alignment.margin),
                    ),
                    f"{score.sentences} sentences",
                )
                for name, score in scores.items()
                for layer, alignment in score.layer_alignment.items()
            ),
            names,
        )
    )
    for kind, title in (("distance", "distance to the head"), ("label", "label")):
        for side, note in (("source", ""), ("target", _LEFT_ONLY)):
            charts.append(
                _points(
                    f"UAS {side} by {title}",
                    "How many words have the right head, in per cent, with 95 % intervals (Wilson)."
                    + note,
                    "words to the head" if kind == "distance" else "label",
                    "UAS",
                    (
                        _Point(
                            name,
                            part,
                            100 * score.uas,
                            _wilson(score.correct, score.counted),
                            f"{score.counted} words",
                        )
                        for name, system in scores.items()
                        for part, score in _detail(system, side, f"by_{kind}").items()
                        if score.counted
                    ),
                    names,
                )
            )
    return [chart for chart in charts if chart]


def _detail(score: SystemScore, side: str, kind: str) -> Mapping[str, Any]:
    return getattr(getattr(score, f"{side}_detail"), kind, None) or {}


def _by_length(scores: Mapping[str, SystemScore]) -> Chart | None:
    """Draw differences to the baseline, with intervals; without one, BLEU itself."""
    names, x = list(scores), "words in the source (sentences)"
    tests = [score.significance for score in scores.values() if score.significance]
    baseline = tests[0].baseline if tests else None
    base = scores[baseline].bleu_by_length if baseline else None
    if not base or len(names) < 2:
        points = (
            _Point(name, f"{words} ({b.sentences})", b.bleu, None, f"{b.sentences} sentences")
            for name, score in scores.items()
            for words, b in (score.bleu_by_length or {}).items()
        )
        return _points("BLEU by length", "", x, "BLEU", points, names)
    differences = [
        _Point(
            name,
            f"{words} ({bucket.sentences})",
            bucket.bleu - base[words].bleu,
            bucket.interval,
            f"{bucket.sentences} sentences",
        )
        for name, score in scores.items()
        if name != baseline
        for words, bucket in (score.bleu_by_length or {}).items()
    ]
    with_interval = [point for point in differences if point.interval]
    note = f"Difference to {baseline}, with 95 % intervals by bootstrap over the sentences."
    if with_interval and len(with_interval) < len(differences):
        note += f" Lengths of fewer than {FEWEST} sentences are left out."
    return _points(
        "BLEU by length",
        note,
        x,
        "BLEU, difference",
        with_interval or differences,
        names,
        zero=True,
    )


@dataclass(frozen=True)
class _Point:
    """A number of one system, and between which values it lies."""

    system: str
    part: str
    value: float
    interval: tuple[float, float] | None
    count: str

    def row(self) -> dict[str, Any]:
        """Return it as data of a chart."""
        low, high = self.interval or (None, None)
        ends = {"low": low and round(low, 2), "high": high and round(high, 2)}
        value = round(self.value, 2)
        return {"system": self.system, "part": self.part, "value": value, **ends, "n": self.count}


def _wilson(right: int, counted: int) -> tuple[float, float]:
    """Return the 95 % interval, in per cent, of a share among so many words."""
    share, square = right / counted, 1.96**2
    middle = share + square / (2 * counted)
    half = 1.96 * math.sqrt(share * (1 - share) / counted + square / (4 * counted**2))
    whole = (1 + square / counted) / 100
    return (middle - half) / whole, (middle + half) / whole


def _points(
    title: str,
    note: str,
    x: str,
    y: str,
    points: Iterable[_Point],
    systems: Sequence[str],
    zero: bool = False,
) -> Chart | None:
    """Draw dots with intervals; ``zero``: and a line at 0. None if there are no dots."""
    rows = [point.row() for point in points]
    if not rows:
        return None
    present = [name for name in systems if any(row["system"] == name for row in rows)]
    parts = len({row["part"] for row in rows})
    axis = _FLAT if parts <= 8 else alt.Axis(labelAngle=-45)
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X("part:N", title=x, sort=None, axis=axis),
        xOffset=alt.XOffset("system:N", scale=alt.Scale(domain=present, paddingOuter=0.7)),
        color=colours(systems, present),
        tooltip=["system:N", "part:N", "value:Q", "low:Q", "high:Q", "n:N"],
    )
    scale = alt.Scale(zero=False)
    dots = base.mark_point(filled=True, size=46, opacity=1)
    chart: Any = dots.encode(y=alt.Y("value:Q", title=y, scale=scale))
    if any(row["low"] is not None for row in rows):
        lines = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.8)
        chart = lines.encode(y=alt.Y("low:Q", title=y, scale=scale), y2="high:Q") + chart
    if zero:
        line = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=INK)
        chart = line.encode(y="zero:Q") + chart
    return make_chart(title, note, chart, rows, width=max(240, parts * (len(present) * 13 + 22)))


def make_chart(title: str, note: str, chart: Any, rows: list[dict[str, Any]], width: int) -> Chart:
    """Return a chart in the size of those on the page."""
    sized = dress(chart.properties(width=width, height=190))
    return Chart(title, note, {**sized.to_dict(), "datasets": {"rows": rows}})


def colours(systems: Sequence[str], shown: Iterable[str]) -> alt.Color:
    """Return the channel that gives each system its colour.

    Args:
        systems: all systems of the page.
        shown: those that the chart shows.
    """
    palette = [COLOURS[index % len(COLOURS)] for index in range(len(systems))]
    scale = alt.Scale(domain=list(systems), range=palette)
    present = {*shown}
    legend = alt.Legend(
        orient="top", title=None, symbolOpacity=1, values=[n for n in systems if n in present]
    )
    return alt.Color("system:N", scale=scale, legend=legend)
