"""Charts of the scores on the whole test set, each a complete Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from ..evaluation.scoring import SystemScore
from .charts import dress
from .training_log import Point

COLOURS = ("#1c5fb8", "#e8590c", "#2b8a3e", "#9c36b5", "#c92a2a", "#0b7285", "#5f3dc4", "#868e96")


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
    charts = [
        _points(
            "BLEU by length",
            "By the number of words in the source.",
            "words in the source",
            "BLEU",
            (
                (name, words, bucket.bleu, bucket.sentences, "sentences")
                for name, score in scores.items()
                for words, bucket in (score.bleu_by_length or {}).items()
            ),
            names,
        )
    ]
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


def training_charts(logs: Mapping[str, Sequence[Point]], systems: Sequence[str]) -> list[Chart]:
    """Draw each loss over updates, for training (thin) and validation (with dots)."""
    losses = dict.fromkeys(point.loss for points in logs.values() for point in points)
    return [_curve(loss, logs, systems) for loss in losses]


def _curve(loss: str, logs: Mapping[str, Sequence[Point]], systems: Sequence[str]) -> Chart:
    rows = [
        {"system": name, "part": p.part, "update": p.update, "value": p.value}
        for name, points in logs.items()
        for p in points
        if p.loss == loss
    ]
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X("update:Q", title="updates"),
        y=alt.Y("value:Q", title=loss, scale=alt.Scale(zero=False)),
        color=_colour(systems),
        tooltip=["system:N", "part:N", "update:Q", "value:Q"],
    )
    training = base.transform_filter("datum.part == 'train'").mark_line(
        strokeWidth=1.2, opacity=0.55
    )
    validation = base.transform_filter("datum.part == 'valid'").mark_line(
        strokeWidth=2, point=alt.OverlayMarkDef(size=34)
    )
    return _chart(loss, "", training + validation, rows, width=300)


def _points(
    title: str,
    note: str,
    x: str,
    y: str,
    rows: Iterable[tuple[str, str, float, int, str]],
    systems: Sequence[str],
) -> Chart | None:
    data = [
        {"system": name, "part": part, "value": round(value, 2), "count": f"{count} {unit}"}
        for name, part, value, count, unit in rows
    ]
    if not data:
        return None
    chart = (
        alt.Chart(alt.NamedData("rows"))
        .mark_bar()
        .encode(
            x=alt.X("part:N", title=x, sort=None, axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("system:N", sort=list(systems)),
            y=alt.Y("value:Q", title=y),
            color=_colour(systems),
            tooltip=["system:N", "part:N", "value:Q", "count:N"],
        )
    )
    parts = len({row["part"] for row in data})
    shown = len({row["system"] for row in data})
    if parts > 8:
        chart = chart.encode(x=alt.X("part:N", title=x, sort=None, axis=alt.Axis(labelAngle=-45)))
    return _chart(title, note, chart, data, width=max(240, parts * (shown * 12 + 14)))


def _chart(title: str, note: str, chart: Any, rows: list[dict[str, Any]], width: int) -> Chart:
    sized = dress(chart.properties(width=width, height=190))
    return Chart(title, note, {**sized.to_dict(), "datasets": {"rows": rows}})


def _colour(systems: Sequence[str]) -> alt.Color:
    colours = [COLOURS[index % len(COLOURS)] for index in range(len(systems))]
    scale = alt.Scale(domain=list(systems), range=colours)
    return alt.Color("system:N", scale=scale, legend=alt.Legend(orient="top", title=None))
