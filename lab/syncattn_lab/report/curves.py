"""Charts of losses and accuracies during training: means over seeds, with their range."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

from ..printed.training_log import Point
from .overview import Chart, make_chart, tell_apart
from .viz import alt

_NAMES = {
    "nll_loss": "loss without label smoothing",
    "src_dep_loss": "dependency loss of the source",
    "tgt_dep_loss": "dependency loss of the target",
    "sync_loss": "synchronisation loss",
    "sync_mse_loss": "SynchMSE loss",
    "sync_rank_loss": "SynchRank loss",
    "src_uas": "parents of the source found (%)",
    "tgt_uas": "parents of the target found (%)",
}
#: A sum of losses with their weights; systems have different losses, so it is not compared.
_SUM = "total_loss"
_BEGINNING = 1 / 3
"""The share of updates, from the first, whose values may lie outside of the chart."""


def training_charts(
    logs: Mapping[str, Sequence[Sequence[Point]]], systems: Sequence[str]
) -> list[Chart]:
    """Draw a chart for each logged loss or accuracy, with a curve for each system.

    Values are of the validation text, or else of the training text. ``systems`` are all systems of
    the page, which determine the colours.
    """
    every = [point for seeds in logs.values() for seed in seeds for point in seed]
    every = [point for point in every if point.loss != _SUM]
    charts = []
    for measure in dict.fromkeys(point.loss for point in every):
        parts = {point.part for point in every if point.loss == measure}
        part = "valid" if "valid" in parts else "train"
        rows: list[dict[str, Any]] = []
        for name, seeds in logs.items():
            values = [_select(seed, measure, part) for seed in seeds]
            rows += [{"system": name, **row} for row in _line(values)]
        charts.append(_curve(measure, part, rows, systems))
    return charts


def _select(points: Iterable[Point], loss: str, part: str) -> dict[int, float]:
    """Return the values of a loss on the training or validation text, by update."""
    return {p.update: p.value for p in points if (p.loss, p.part) == (loss, part)}


def _line(seeds: Iterable[Mapping[int, float]]) -> Iterator[dict[str, Any]]:
    """Yield the mean, lowest and highest value over seeds at each update that all have logged."""
    logged = [seed for seed in seeds if seed]
    for update in logged[0] if logged else ():
        if all(update in seed for seed in logged):
            values = [seed[update] for seed in logged]
            ends = {"value": mean(values), "lowest": min(values), "highest": max(values)}
            yield {"update": update, **ends, "seeds": len(values)}


def _curve(measure: str, part: str, rows: list[dict[str, Any]], systems: Sequence[str]) -> Chart:
    low, high = _zoom(rows)
    note = ""
    if any(not low <= row["value"] <= high for row in rows):
        note = "The beginning lies outside."
    if any(row["seeds"] > 1 for row in rows):
        note = f"Mean of the seeds, and their range. {note}".strip()
    name = _NAMES.get(measure, measure.replace("_", " "))
    text = "Validation" if part == "valid" else "Training"
    title = f"{text} loss" if measure == "loss" else f"{text}: {name}"
    scale = alt.Scale(domain=(low, high), zero=False, nice=False)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=None, scale=scale, axis=alt.Axis(tickCount=5))

    lengths = Counter(row["system"] for row in rows)
    channels = tell_apart(systems, lengths, "strokeDash")
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X(
            "update:Q",
            title="updates",
            scale=alt.Scale(padding=6),
            axis=alt.Axis(tickCount=4, grid=False),
        ),
        color=channels["color"],
        tooltip=["system:N", "update:Q", "value:Q", "lowest:Q", "highest:Q", "seeds:Q"],
    )
    band = base.mark_area(opacity=0.18, clip=True).encode(y=y("lowest"), y2="highest:Q")
    # Points make a line of one value visible, but would hide one of many.
    few = max(lengths.values(), default=0) < 40
    point: Any = alt.OverlayMarkDef(size=24, clip=True) if few else False
    line = base.mark_line(strokeWidth=1.8, clip=True, point=point).encode(
        y=y("value"), strokeDash=channels["strokeDash"]
    )
    return make_chart(title, note, band + line, rows)


def _zoom(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return the limits of a chart's values: those after the beginning, where systems are close."""
    begin = _BEGINNING * max((row["update"] for row in rows), default=0)
    late = [row for row in rows if row["update"] >= begin]
    low = min((row["lowest"] for row in late), default=0.0)
    high = max((row["highest"] for row in late), default=1.0)
    room = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
    return low - room, high + room
