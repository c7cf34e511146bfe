"""Charts of the scores on the whole test set, each a complete Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from ..evaluation.scoring import SystemScore
from .charts import INK, dress

COLOURS = ("#1c5fb8", "#e8590c", "#2b8a3e", "#9c36b5", "#c92a2a", "#0b7285", "#5f3dc4", "#868e96")


_FLAT = alt.Axis(labelAngle=0)
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
            "Alignment error rate of every decoder layer's cross-attention; lower is better.",
            "decoder layer",
            "AER",
            (
                (name, str(layer), 100 * alignment.aer, score.sentences, "sentences")
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
                    "How many words have the right head, in per cent." + note,
                    "words to the head" if kind == "distance" else "label",
                    "UAS",
                    (
                        (name, part, 100 * score.uas, score.counted, "words")
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
    names = list(scores)
    tests = [score.significance for score in scores.values() if score.significance]
    baseline = tests[0].baseline if tests else None
    base = scores[baseline].bleu_by_length if baseline else None
    if not base or len(names) < 2:
        rows = (
            (name, words, bucket.bleu, bucket.sentences, "sentences")
            for name, score in scores.items()
            for words, bucket in (score.bleu_by_length or {}).items()
        )
        note = "By the number of words in the source."
        return _points("BLEU by length", note, "words in the source", "BLEU", rows, names)
    data = [
        {
            "system": name,
            "part": f"{words} ({bucket.sentences})",
            "value": round(bucket.bleu - base[words].bleu, 2),
            "low": bucket.interval and round(bucket.interval[0], 2),
            "high": bucket.interval and round(bucket.interval[1], 2),
        }
        for name, score in scores.items()
        if name != baseline
        for words, bucket in (score.bleu_by_length or {}).items()
    ]
    shown = [name for name in names if name != baseline]
    base_chart = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X("part:N", title="words in the source (sentences)", sort=None, axis=_FLAT),
        xOffset=alt.XOffset("system:N", scale=alt.Scale(domain=shown, paddingOuter=0.7)),
        color=colours(names, shown),
        tooltip=["system:N", "part:N", "value:Q", "low:Q", "high:Q"],
    )
    title = "BLEU, difference"
    dots = base_chart.mark_point(filled=True, size=46, opacity=1).encode(
        y=alt.Y("value:Q", title=title)
    )
    bars = base_chart.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.8)
    zero = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=INK).encode(y="zero:Q")
    chart = zero + bars.encode(y=alt.Y("low:Q", title=title), y2="high:Q") + dots
    note = f"Difference to {baseline}, with 95 % intervals by bootstrap over the sentences."
    parts = len({row["part"] for row in data})
    width = parts * max(74, len(names) * 14 + 20)
    return make_chart("BLEU by length", note, chart, data, width=width)


def _points(
    title: str,
    note: str,
    x: str,
    y: str,
    rows: Iterable[tuple[str, str, float, int, str]],
    systems: Sequence[str],
) -> Chart | None:
    data: list[dict[str, Any]] = [
        {"system": name, "part": part, "value": round(value, 2), "count": f"{count} {unit}"}
        for name, part, value, count, unit in rows
    ]
    if not data:
        return None
    chart = (
        alt.Chart(alt.NamedData("rows"))
        .mark_bar()
        .encode(
            x=alt.X("part:N", title=x, sort=None, axis=_FLAT),
            xOffset=alt.XOffset("system:N", sort=list(systems)),
            y=alt.Y("value:Q", title=y),
            color=colours(systems, (row["system"] for row in data)),
            tooltip=["system:N", "part:N", "value:Q", "count:N"],
        )
    )
    parts = len({row["part"] for row in data})
    shown = len({row["system"] for row in data})
    if parts > 8:
        chart = chart.encode(x=alt.X("part:N", title=x, sort=None, axis=alt.Axis(labelAngle=-45)))
    return make_chart(title, note, chart, data, width=max(240, parts * (shown * 12 + 14)))


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
    found = [COLOURS[index % len(COLOURS)] for index in range(len(systems))]
    scale = alt.Scale(domain=list(systems), range=found)
    kept = {*shown}
    legend = alt.Legend(
        orient="top", title=None, symbolOpacity=1, values=[n for n in systems if n in kept]
    )
    return alt.Color("system:N", scale=scale, legend=legend)
