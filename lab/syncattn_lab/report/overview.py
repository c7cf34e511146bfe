"""Charts of the scores on the whole test set, each a complete Vega-Lite specification."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from ..evaluation.attachment import AttachmentScore
from ..evaluation.group_scores import ALL, GroupScore
from ..evaluation.length import FEWEST
from ..evaluation.scoring import SystemScore
from ..evaluation.word_groups import LINK
from .charts import INK, dress
from .viz import alt
from .where import RECALL

COLOURS = ("#620e63", "#3d5204", "#316d5e", "#804cd6", "#05371d", "#864d80", "#687503", "#766845")
"""The colours of systems, unlike the blue of right and the orange of wrong. Any two differ by
10 or more in CIEDE2000, also for readers who see two primary colours only, on white and on black.
Each has a contrast of 5 or more with white."""
SHAPES = {
    **{"circle": "●", "square": "■", "triangle-up": "▲", "diamond": "◆", "cross": "✚"},
    **{"triangle-down": "▼", "triangle-right": "▶", "triangle-left": "◀"},
}
"""The shapes of systems' dots in Vega-Lite, with the characters that stand for them."""
_KINDS = {
    "label": "label of the source word",
    "pos": "part of speech of the source word",
    "arc": "arc from the source word to its parent",
    "depth": "depth of the source word in its tree",
    "frequency": "frequency in training",
    "length": "words in the source",
    "unseen": "whether training had the source word",
}
_NOTES = {
    "arc": "1, 2, 3-4, 5+: how many words farther on the parent is; then its side.",
    "depth": "Steps to the root.",
}
_DASHES = ([1, 0], [7, 3], [2, 2], [8, 3, 2, 3], [4, 1], [12, 4], [1, 3], [10, 2, 2, 2, 2, 2])

#: Pixels of height for the dot of a system, and pixels between two parts.
_DOT, _ROOM = 12, 9
#: The most parts of a chart; rarer ones, such as labels, are left out.
_MOST_PARTS = 20


@dataclass(frozen=True)
class Chart:
    """A chart of the page, with the heading above and the note below."""

    title: str
    note: str
    specification: dict[str, Any]


def measured_charts(scores: Mapping[str, SystemScore]) -> list[Chart]:
    """Draw charts of BLEU by length, AER by layer, and UAS by distance and label, if measured."""
    charts = [_by_length(scores), _by_layer(scores)]
    for kind in ("distance", "label"):
        charts += [_by_detail(scores, side, kind) for side in ("source", "target")]
    return [chart for chart in charts if chart]


def group_charts(scores: Iterable[GroupScore], systems: Sequence[str]) -> list[Chart]:
    """Draw the recall of words in groups, a chart for each kind of groups."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for score in scores:
        if score.measure == RECALL and score.kind not in (ALL, LINK):
            part = f"{score.group} ({score.total})"
            ends = [100 * end for end in score.interval] if score.interval else None
            row = _row(score.system, part, 100 * score.fraction, ends, f"{score.total} words")
            rows.setdefault(score.kind, []).append(row)
    charts = (
        _points(f"By {_KINDS[kind]}", _NOTES.get(kind, ""), "words found (%)", each, systems)
        for kind, each in rows.items()
    )
    return [chart for chart in charts if chart]


def _by_length(scores: Mapping[str, SystemScore]) -> Chart | None:
    """Draw differences in BLEU to the baseline by length; of a single system, its BLEU."""
    tests = [score.significance for score in scores.values() if score.significance]
    baseline = tests[0].baseline if tests and len(scores) > 1 else None
    base = baseline and scores[baseline].bleu_by_length
    rows = [
        _row(
            name,
            f"{words} ({bucket.sentences})",
            bucket.bleu - (base[words].bleu if base else 0),
            bucket.interval,
            f"{bucket.sentences} sentences",
        )
        for name, score in scores.items()
        if not base or name != baseline
        for words, bucket in (score.bleu_by_length or {}).items()
    ]
    with_interval = [row for row in rows if row["low"] is not None]
    title, note = "BLEU by length", "Words in the source (sentences)."
    if not base:
        return _points(title, note, "BLEU", rows, [*scores])
    note += f" Difference to {baseline}, with 95 % intervals by bootstrap over the sentences."
    if with_interval and len(with_interval) < len(rows):
        note += f" Lengths of fewer than {FEWEST} sentences are left out."
    return _points(title, note, "BLEU, difference", with_interval or rows, [*scores], zero=True)


def _by_layer(scores: Mapping[str, SystemScore]) -> Chart | None:
    rows = []
    for name, score in scores.items():
        for layer, alignment in score.layer_alignment.items():
            aer, margin = alignment.aer, alignment.margin
            ends = [100 * (aer - margin), 100 * (aer + margin)]
            rows.append(_row(name, str(layer), 100 * aer, ends, f"{score.sentences} sentences"))
    note = "Alignment error rate of the cross-attention of each decoder layer, in %; lower is "
    note += "better. The table of scores has that of the layer or head that is used for alignment. "
    note += "95 % intervals over sentences."
    return _points("AER by layer", note, "AER", rows, [*scores])


def _by_detail(scores: Mapping[str, SystemScore], side: str, kind: str) -> Chart | None:
    def find_ends(score: AttachmentScore) -> list[float]:
        from scipy.stats import binomtest  # takes a second to import

        interval = binomtest(score.correct, score.counted).proportion_ci(method="wilson")
        return [100 * interval.low, 100 * interval.high]

    rows = [
        _row(name, part, 100 * score.uas, find_ends(score), f"{score.counted} words")
        for name, system in scores.items()
        if (attachment := getattr(system, f"{side}_attachment"))
        for part, score in attachment.parts[kind].items()
        if score.counted
    ]
    note = "How many words have the right parent, in per cent, with 95 % intervals (Wilson)."
    if side == "target":
        note += " Only parents to the left count: the decoder sees no future."
    title = f"UAS {side} by {'label' if kind == 'label' else 'distance to the parent'}"
    return _points(title, note, "UAS", rows, [*scores])


def _row(
    system: str, part: str, value: float, interval: Sequence[float] | None, count: str
) -> dict[str, Any]:
    low, high = (round(end, 2) for end in interval) if interval else (None, None)
    value = round(value, 2)
    return {"system": system, "part": part, "value": value, "low": low, "high": high, "n": count}


def _points(
    title: str,
    note: str,
    measure: str,
    rows: list[dict[str, Any]],
    systems: Sequence[str],
    zero: bool = False,
) -> Chart | None:
    """Draw the value of each system with its interval in each part; return None without values.

    Parts, such as lengths or labels, are below each other, since a phone has room for few of them
    side by side. If ``zero``, a line is drawn at 0.
    """
    if not rows:
        return None
    shown = [*dict.fromkeys(row["part"] for row in rows)]
    if len(shown) > _MOST_PARTS:
        note = f"{note} The {_MOST_PARTS} most frequent of {len(shown)}.".strip()
        shown = shown[:_MOST_PARTS]
        rows = [row for row in rows if row["part"] in shown]
    drawn = {row["system"] for row in rows}
    present = [name for name in systems if name in drawn]
    channels = tell_apart(systems, present, "shape")
    base = alt.Chart(alt.NamedData("rows")).encode(
        y=alt.Y("part:N", title=None, sort=shown, axis=alt.Axis(labelLimit=150, grid=True)),
        yOffset=alt.YOffset("system:N", scale=alt.Scale(domain=present, paddingOuter=0.7)),
        color=channels["color"],
        tooltip=["system:N", "part:N", "value:Q", "low:Q", "high:Q", "n:N"],
    )

    def x(field: str) -> alt.X:
        axis = alt.Axis(title=measure, tickCount=4, grid=False)
        return alt.X(f"{field}:Q", scale=alt.Scale(zero=False), axis=axis)

    dots = base.mark_point(filled=True, size=46, opacity=1)
    chart: Any = dots.encode(x=x("value"), shape=channels["shape"])
    if any(row["low"] is not None for row in rows):
        lines = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.8)
        chart = lines.encode(x=x("low"), x2="high:Q") + chart
    if zero:
        line = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=INK)
        chart = line.encode(x="zero:Q") + chart
    height = len(shown) * (_DOT * len(present) + _ROOM)
    return make_chart(title, note, chart, rows, max(height, 60))


def make_chart(
    title: str, note: str, chart: Any, rows: list[dict[str, Any]], height: int = 190
) -> Chart:
    """Return a chart of the page, which fills the width of its place there.

    Args:
        title: the title of the chart.
        note: a text below the title.
        chart: the Altair chart; its data are named ``rows``.
        rows: the data.
        height: of what is drawn between the axes, in pixels.
    """
    specification = dress(chart.properties(width="container", height=height)).to_dict()
    return Chart(title, note, {**specification, "datasets": {"rows": rows}})


def tell_apart(systems: Sequence[str], shown: Iterable[str], channel: str) -> dict[str, Any]:
    """Return the Vega-Lite channels for each system's colour, and for its shape or dashes.

    ``channel`` is ``shape`` or ``strokeDash``. The legend has the systems in ``shown``. If the page
    has one system, no chart has a legend.
    """
    present = {*shown}
    values = [name for name in systems if name in present]
    symbol: dict[str, Any] = (
        {} if channel == "shape" else {"symbolType": "stroke", "symbolSize": 500}
    )
    legend = None
    if len(systems) > 1:
        legend = alt.Legend(orient="top", title=None, symbolOpacity=1, values=values, **symbol)
    marks: Iterable[Any] = SHAPES if channel == "shape" else _DASHES
    return {
        name: {
            "field": "system",
            "type": "nominal",
            "legend": legend,
            "scale": {"domain": [*systems], "range": [*islice(cycle(marked), len(systems))]},
        }
        for name, marked in (("color", COLOURS), (channel, marks))
    }
