"""Charts of sentences: dependency arcs, alignment grids, heat maps and trees.

Each is an Altair chart over named data sets, without the data. The chart's own transforms compute
all positions from the data. So a file shows the same picture as the report's page, where a browser
fills the chart with the data of any sentence. Positions are pixels: a picture is as large as its
sentence. Sentences in right-to-left scripts run from right to left.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from syncattn_fairseq.inference.drawing import INK, RIGHT, UNKNOWN, WRONG

from .viz import alt

Data: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]
"""The data of a chart: the rows of each data set, by the name of the set."""

GOLD, UNASKED = "#5f6870", "#a5bfe3"
CELL = 19
_STEPS = 24
"""Number of straight lines that an arc is drawn with."""

_RTL = r"test(regexp('[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc]'), datum.word)"
_LABEL_SIZE = "(isValid(datum.label) ? 5.2 * length(datum.label) : 0)"
_ABOVE_LABELS = "-10 * datum.labelled"
_WIDE = r"replace(datum.word, regexp('[\\u0000-\\u10ff]', 'g'), '')"


def arcs(prefix: str = "") -> alt.LayerChart:
    """Draw a sentence's gold dependency arcs above its words and predicted ones below.

    Wrong arcs are orange; without a gold parse, predicted arcs are dark grey. Gold labels stand
    between the words and their arcs, where no two can meet.

    Data ``words``: ``word``; ``gold`` and ``predicted`` heads, from 1, 0 = root, null = none;
    ``label``, the gold label or ``""``; ``causal``, whether the model cannot look ahead and so
    cannot find heads to the right, which are pale.
    """
    words = _judged(_words(alt.Chart(alt.NamedData(prefix + "words"))))
    return _picture(
        *_dependencies(words, "gold", -1, alt.ColorValue(GOLD), _ABOVE_LABELS),
        *_dependencies(words, "predicted", 1, _by_verdict()),
        _labels(words),
        _text(words, 0),
    )


def compare(prefix: str = "") -> alt.LayerChart:
    """Draw the dependency arcs of several systems below the words, and gold arcs above.

    Arcs that all systems have are grey; only those that differ have their systems' colours and
    shapes. They are dashed if gold has another head, and dotted where no head counts.

    Data ``items``: first a row for each word, as in `arcs`, without ``predicted``; then one for
    each arc, with ``dependent``, a word from 0, ``head``, from 1, 0 = root, ``colour``, ``shape``,
    ``line``, ``solid``, ``dashed`` or ``dotted``, and ``shift``, pixels that keep arcs apart.
    """
    items = _words(alt.Chart(alt.NamedData(prefix + "items")))
    words = items.transform_filter("isValid(datum.word)")
    drawn = items.transform_filter("isValid(datum.dependent)").transform_calculate(
        x="datum.all[datum.dependent].x"
    )
    *lines, tip = _dependencies(drawn, "head", 1, alt.Color("colour:N", scale=None))
    return _picture(
        *_dependencies(words, "gold", -1, alt.ColorValue(GOLD), _ABOVE_LABELS),
        *lines,
        tip.encode(shape=alt.Shape("shape:N", scale=None)),
        _labels(words),
        _plain_text(words, 0).encode(tooltip=["word:N", "label:N", "gold:Q"]),
    )


def heat(prefix: str = "") -> alt.LayerChart:
    """Draw a matrix of attention weights as a heat map, with rings around gold cells.

    Larger weights are darker.

    Data ``rows`` and ``columns``: ``word`` of each; ``cells``: ``row``, ``column``, from 0,
    ``weight``, from 0 to 1, ``text``, what a tooltip says, and ``shown``, the text in the cell;
    ``gold``: ``row``, ``column``.
    """
    cells = _cells(alt.Chart(alt.NamedData(prefix + "cells")))
    squares = cells.mark_rect(fill="#12408a", stroke="#ced4da", strokeWidth=0.5).encode(
        **_square(), fillOpacity=alt.FillOpacity("weight:Q", scale=None), tooltip="text:N"
    )
    rings = (
        _cells(alt.Chart(alt.NamedData(prefix + "gold")))
        .mark_point(size=92, strokeWidth=2.2, filled=False, color=WRONG, opacity=1)
        .encode(**_at("middle_x", "middle_y"))
    )
    legible = alt.condition("datum.weight > 0.55", alt.value("white"), alt.value(INK))
    shown = (
        cells.transform_filter("isValid(datum.shown)")
        .mark_text(fontSize=10)
        .encode(**_at("middle_x", "middle_y"), text="shown:N", color=legible)
    )
    return _picture(squares, shown, rings, *_sides(prefix))


def links(prefix: str = "") -> alt.LayerChart:
    """Draw a word alignment as a grid: predicted links as squares, gold links as frames.

    A predicted link is blue if it is a gold link, orange if not, and grey without a gold alignment.
    Frames are solid for sure links and dashed for possible links.

    Data ``rows`` and ``columns``: ``word`` of each, and of rows ``across``, the number of columns;
    ``cells``: ``row``, ``column`` of predicted links and ``verdict``, ``right``,
    ``wrong``, or ``unknown`` without gold;
    ``gold``: ``row``, ``column``, ``sure``.
    """
    every = (
        alt.Chart(alt.NamedData(prefix + "rows"))
        .transform_window(position="row_number()")
        .transform_calculate(row="datum.position - 1", column="sequence(datum.across)")
        .transform_flatten(["column"])
    )
    grid = _cells(every).mark_rect(fillOpacity=0, stroke="#ced4da", strokeWidth=0.7)
    inner = _cells(alt.Chart(alt.NamedData(prefix + "cells"))).mark_square(size=110, opacity=1)
    gold = _cells(alt.Chart(alt.NamedData(prefix + "gold")))
    frame: dict[str, Any] = {"fillOpacity": 0, "stroke": INK, "strokeWidth": 1.8}
    return _picture(
        grid.encode(**_square()),
        inner.encode(**_at("middle_x", "middle_y"), color=_by_verdict()),
        gold.transform_filter("!datum.sure")
        .mark_rect(**frame, strokeDash=[3, 3])
        .encode(**_square()),
        gold.transform_filter("datum.sure").mark_rect(**frame).encode(**_square()),
        *_sides(prefix),
    )


def tree(prefix: str = "") -> alt.LayerChart:
    """Draw a phrase structure tree above its words, with wrong constituents in orange.

    Without a gold tree, constituents are grey.

    Data ``items``: first a row for each word, with ``word``; then one for each constituent:
    ``start`` and ``end``, its first word and the one after its last; ``height``, from 1;
    ``parent``, the index of its parent among the constituents, null for the topmost; ``label``;
    ``verdict``, as in `links`.
    """
    items = (
        _words(alt.Chart(alt.NamedData(prefix + "items")))
        .transform_joinaggregate(words="valid(word)")
        .transform_calculate(
            node_x="isValid(datum.start) "
            "? (datum.all[datum.start].x + datum.all[datum.end - 1].x) / 2 : datum.x",
            node_y="isValid(datum.start) ? -8 - 17 * datum.height : -9",
        )
        .transform_joinaggregate(everything="values(position)")
    )
    nodes = items.transform_filter("isValid(datum.start)")
    edges = items.transform_filter("isValid(datum.parent)").transform_calculate(
        to_x="datum.everything[datum.words + datum.parent].node_x",
        to_y="datum.everything[datum.words + datum.parent].node_y",
    )
    leaves = edges.transform_filter("isValid(datum.word)")
    above = edges.transform_filter("isValid(datum.start)")
    colour, node = _by_verdict(), _at("node_x", "node_y")
    return _picture(
        leaves.mark_rule(color="#adb5bd").encode(**node, x2="to_x", y2="to_y"),
        above.mark_rule(strokeWidth=1.6).encode(**node, x2="to_x", y2="to_y", color=colour),
        nodes.mark_point(filled=True, size=36, opacity=1).encode(
            **node, color=colour, tooltip="label:N"
        ),
        nodes.mark_text(fontSize=9, color=GOLD, dy=-8).encode(**node, text="label:N"),
        _plain_text(items.transform_filter("isValid(datum.word)"), 2),
    )


def fill(chart: Any, data: Data) -> dict[str, Any]:
    """Return the Vega-Lite specification of a chart, with its data filled in."""
    return {**chart.to_dict(), "datasets": {name: list(rows) for name, rows in data.items()}}


def describe_kinds() -> dict[str, Any]:
    """Return the styled Vega-Lite specification of each kind of chart, without data, by name."""
    return {draw.__name__: dress(draw()).to_dict() for draw in (arcs, compare, links, tree, heat)}


def dress(chart: Any) -> Any:
    """Set fonts, titles and axes of a whole picture, which may have several charts."""
    return (
        chart.configure_view(stroke=None)
        .configure_text(font="sans-serif")
        .configure_title(anchor="start", fontSize=13, font="sans-serif", color=INK, offset=10)
        .configure_axis(labelFontSize=11, titleFontSize=11, gridColor="#e9ecef", labelFlush=False)
    )


def _words(chart: alt.Chart) -> Any:
    """Add the place of each word to the rows of a chart: ``position`` from 1, ``size`` and ``x``.

    ``all`` lists the rows of all words.
    """
    return (
        chart.transform_window(position="row_number()")
        .transform_calculate(
            size="isValid(datum.word) ? max(16, 7.2 * length(datum.word) "
            f"+ 6 * length({_WIDE}), {_LABEL_SIZE} - 8) + 16 : 0",
            named=f"{_LABEL_SIZE} > 0 ? 1 : 0",
            leftward=f"isValid(datum.word) && {_RTL} ? 1 : 0",
        )
        .transform_window(reach="sum(size)", frame=[None, 0])
        .transform_joinaggregate(rtl="max(leftward)", labelled="max(named)", total="sum(size)")
        .transform_calculate(
            x="datum.size / 2 + (datum.rtl ? datum.total - datum.reach : datum.reach - datum.size)"
        )
        .transform_joinaggregate(all="values(position)")
    )


def _judged(words: Any) -> Any:
    return words.transform_calculate(
        verdict="!isValid(datum.gold) ? 'unknown' : datum.predicted == datum.gold ? 'right' : "
        "datum.causal && datum.gold > datum.position ? 'unasked' : 'wrong'"
    )


def _dependencies(words: Any, heads: str, up: int, colour: Any, base: int | str = 0) -> list[Any]:
    """Return layers of dependency arcs, lines of roots, and tips at the dependents.

    They are above (``up`` is -1) or below (1) the words, which are at the height ``base``.
    """
    arcs = (  # of the words that have a head; where they end, and how high they are
        words.transform_filter(f"isValid(datum.{heads})")
        .transform_calculate(to=f"datum.{heads} > 0 ? datum.all[datum.{heads} - 1].x : datum.x")
        # A power below 1, so that an arc never meets one inside it.
        .transform_calculate(
            height="8 + 2.3 * pow(abs(datum.to - datum.x), 0.6) "
            "+ (isValid(datum.shift) ? datum.shift : 0)",
            line="isValid(datum.line) ? datum.line : 'solid'",
        )
    )
    lines = {"solid": [1, 0], "dashed": [4, 3], "dotted": [1, 3]}
    scale = alt.Scale(domain=[*lines], range=[*lines.values()])
    dash = alt.StrokeDash("line:N", scale=scale, legend=None)
    line = (
        arcs.transform_filter(f"datum.{heads} > 0")
        .transform_calculate(step=f"sequence({_STEPS + 1})")
        .transform_flatten(["step"])
        .transform_calculate(
            px=f"(datum.x + datum.to) / 2 + (datum.x - datum.to) / 2 "
            f"* cos(PI * datum.step / {_STEPS})",
            py=f"{base} + {up} * (11 + datum.height * sin(PI * datum.step / {_STEPS}))",
        )
        .mark_line(strokeWidth=1.6, strokeJoin="round")
        .encode(x=pixels("px"), y=pixels("py"), detail="position:Q", order="step:Q", color=colour)
        .encode(strokeDash=dash)
    )
    root = (
        arcs.transform_filter(f"datum.{heads} == 0")
        .transform_calculate(near=f"{base} + {up} * 11", far=f"{base} + {up} * 40")
        .mark_rule(strokeWidth=1.6)
        .encode(x=pixels("x"), y=pixels("near"), y2="far", color=colour, strokeDash=dash)
    )
    tip = (
        arcs.transform_calculate(near=f"{base} + {up} * 12")
        .mark_point(
            shape="triangle-down" if up < 0 else "triangle-up", filled=True, size=34, opacity=1
        )
        .encode(x=pixels("x"), y=pixels("near"), color=colour)
    )
    return [line, root, tip]


def _labels(words: Any) -> Any:
    labelled = words.transform_filter("isValid(datum.gold)")
    return labelled.mark_text(fontSize=9, color=GOLD).encode(
        x=pixels("x"), y=alt.value(-13), text="label:N"
    )


def _text(words: Any, y: int) -> Any:
    wrong = "isValid(datum.predicted) && datum.verdict == 'wrong'"
    return _plain_text(words, y).encode(
        color=alt.condition(wrong, alt.value(WRONG), alt.value(INK)),
        tooltip=["word:N", "label:N", "gold:Q", "predicted:Q"],
    )


def _plain_text(words: Any, y: int) -> Any:
    text = words.mark_text(fontSize=13, color=INK)
    return text.encode(x=pixels("x"), y=alt.value(y), text="word:N")


def _by_verdict() -> alt.Color:
    colours = {"right": RIGHT, "wrong": WRONG, "unasked": UNASKED, "unknown": UNKNOWN}
    scale = alt.Scale(domain=[*colours], range=[*colours.values()])
    return alt.Color("verdict:N", legend=None, scale=scale)


def _cells(cells: Any) -> Any:
    return cells.transform_calculate(
        left=f"{CELL} * datum.column",
        top=f"{CELL} * datum.row",
        right=f"{CELL} * (datum.column + 1)",
        bottom=f"{CELL} * (datum.row + 1)",
        middle_x=f"{CELL} * (datum.column + 0.5)",
        middle_y=f"{CELL} * (datum.row + 0.5)",
    )


def _square() -> dict[str, Any]:
    return {**_at("left", "top"), "x2": "right", "y2": "bottom"}


def _at(x: str, y: str) -> dict[str, Any]:
    return {"x": pixels(x), "y": pixels(y)}


def _sides(prefix: str) -> tuple[alt.Chart, alt.Chart]:
    rows, columns = (
        alt.Chart(alt.NamedData(prefix + side))
        .transform_window(position="row_number()")
        .transform_calculate(middle=f"{CELL} * (datum.position - 0.5)")
        for side in ("rows", "columns")
    )
    return (
        rows.mark_text(align="right", fontSize=12, color=INK).encode(
            x=alt.value(-6), y=pixels("middle"), text="word:N"
        ),
        columns.mark_text(align="left", angle=270, fontSize=12, color=INK).encode(
            x=pixels("middle"), y=alt.value(-6), text="word:N"
        ),
    )


def pixels(field: str) -> Any:
    """Return a Vega-Lite channel for a position in pixels, read from a field."""
    return {"field": field, "type": "quantitative", "scale": None, "axis": None}


def _picture(*layers: Any) -> alt.LayerChart:
    picture: Any = alt.layer(*layers)
    return picture.properties(width=1, height=1)  # grows with what is drawn outside it
