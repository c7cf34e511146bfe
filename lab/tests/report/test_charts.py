import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import vl_convert

from syncattn_lab.report import charts
from syncattn_lab.report.charts import CELL, GOLD, INK, RIGHT, UNASKED, UNKNOWN, WRONG

WORDS = ["a", "bb", "ccc"]


@cache
def describe(draw: Callable[[], Any]) -> dict[str, Any]:
    return charts.fill(charts.dress(draw()), {})


class Picture:
    """A chart as SVG; one word must not occur twice in a chart without grids."""

    def __init__(self, draw: Callable[[], Any], **data: list[dict[str, Any]]) -> None:
        svg = vl_convert.vegalite_to_svg({**describe(draw), "datasets": data})
        self.root: Any = ElementTree.fromstring(svg)
        self.places = {
            mark.text: _place(mark)
            for mark in self.marks("text")
            if mark.text and "rotate" not in mark.get("transform", "")
        }

    def marks(self, kind: str) -> list[Any]:
        return [mark for group in self._groups(kind) for mark in group]

    def arcs(self) -> set[tuple[str, str, str]]:
        """Return dependent, head and colour of the arcs above words in lower, below in upper case.

        An arc begins at its dependent.
        """
        found = set()
        for mark in self.marks("line"):
            points = [tuple(map(float, p.split(","))) for p in re.split("[ML]", mark.get("d"))[1:]]
            ends = [self.above_or_below(points[i][0], points[i][1]) for i in (0, -1)]
            assert abs(points[12][1] - points[0][1]) > 8, "it is bent"
            found.add((*ends, mark.get("stroke")))
        return found

    def rules(self) -> set[tuple[float, float, float, float, str]]:
        """Return the lines' ends and colours."""
        found = set()
        for mark in self.marks("rule"):
            x, y = _place(mark)
            end = x + float(mark.get("x2")), y + float(mark.get("y2"))
            found.add((x, y, round(end[0], 2), round(end[1], 2), mark.get("stroke")))
        return found

    def above_or_below(self, x: float, y: float) -> str:
        [(word, below)] = [
            (word, y > place[1])
            for word, place in self.places.items()
            if abs(x - place[0]) < 0.1 and abs(y - place[1]) < 20
        ]
        return word.upper() if below else word

    def rectangles(self) -> dict[tuple[float, float], Any]:
        """Return what fills one cell of a grid, by row and column."""
        found = {}
        for mark in self.marks("rect"):
            x, y, width, height = _box(mark)
            if mark.get("stroke-width") != "0.7":
                assert (width, height) == (CELL, CELL)
                found[y / CELL, x / CELL] = mark
        return found

    def symbols(self) -> dict[tuple[float, float], Any]:
        """Return what stands in the middle of a grid's cells, by row and column."""
        return {
            (y / CELL - 0.5, x / CELL - 0.5): m
            for m in self.marks("symbol")
            for x, y in [_place(m)]
        }

    def _groups(self, kind: str) -> list[Any]:
        return [g for g in self.root.iter() if f"mark-{kind} " in g.get("class", "")]


def _place(mark: Any) -> tuple[float, float]:
    x, y = re.findall(r"-?[\d.]+", mark.get("transform", ""))[:2]
    return round(float(x), 2), round(float(y), 2)


def _box(mark: Any) -> tuple[float, float, float, float]:
    x, y, width, height = map(float, re.findall(r"-?[\d.]+", mark.get("d", ""))[:4])
    return x, y, width, height


def words(
    gold: Sequence[int | None], predicted: list[int], causal: bool = False, names: list[str] = WORDS
) -> list[dict[str, Any]]:
    return [
        {"word": word, "gold": g, "predicted": p, "label": "", "causal": causal}
        for word, g, p in zip(names, gold, predicted, strict=True)
    ]


def test_arcs_lead_to_the_heads_and_only_wrong_ones_are_orange():
    picture = Picture(charts.arcs, words=words([3, 0, 2], [3, 1, 0]))
    gold = {("a", "ccc", GOLD), ("ccc", "bb", GOLD)}
    assert picture.arcs() == gold | {("A", "CCC", RIGHT), ("BB", "A", WRONG)}
    [of_gold, found] = sorted(picture.rules(), key=lambda rule: rule[1])
    assert (of_gold[0], of_gold[-1]) == (picture.places["bb"][0], GOLD)
    assert of_gold[3] < of_gold[1] < 0, "upwards"
    assert (found[0], found[-1]) == (picture.places["ccc"][0], WRONG)
    assert found[3] > found[1] > 0
    orange = {mark.text for mark in picture.marks("text") if mark.get("fill") == WRONG}
    assert orange == {"bb", "ccc"}


def test_without_gold_nothing_is_right():
    """No chart has the colours of a verdict."""
    drawn = Picture(charts.arcs, words=words([None] * 3, [3, 1, 0], causal=True))
    assert drawn.arcs() == {("A", "CCC", UNKNOWN), ("BB", "A", UNKNOWN)}
    cell = {"row": 0, "column": 0, "verdict": "unknown", "text": ""}
    sides = {"rows": [{"word": "x", "across": 1}], "columns": [{"word": "a"}]}
    node = {"start": 0, "end": 2, "height": 1, "parent": None, "label": "", "verdict": "unknown"}
    leaves = [{"word": word, "parent": 0} for word in WORDS[:2]]
    for picture in (
        drawn,
        Picture(charts.links, **sides, cells=[cell], gold=[]),
        Picture(charts.tree, items=[*leaves, node]),
    ):
        text = ElementTree.tostring(picture.root, encoding="unicode")
        assert UNKNOWN in text and not {c for c in (RIGHT, WRONG, UNASKED) if c in text}


def test_heads_to_the_right_are_pale_if_the_model_cannot_look_ahead():
    picture = Picture(charts.arcs, words=words([3, 1, 2], [2, 3, 2], causal=True))
    below = {arc for arc in picture.arcs() if arc[0].isupper()}
    assert below == {("A", "BB", UNASKED), ("BB", "CCC", WRONG), ("CCC", "BB", RIGHT)}


def test_heat_is_opaque_by_weight_in_its_row_and_column():
    weights = {(0, 1): 0.25, (1, 2): 1.0}
    picture = Picture(
        charts.heat,
        rows=[{"word": "x"}, {"word": "y"}],
        columns=[{"word": word} for word in WORDS],
        cells=[
            {"row": row, "column": column, "weight": weight, "text": "", "shown": str(row)}
            for (row, column), weight in weights.items()
        ],
        gold=[{"row": 1, "column": 0}],
    )
    cells = picture.rectangles()
    assert {at: float(cell.get("fill-opacity", 1)) for at, cell in cells.items()} == weights
    assert {at: mark.get("stroke") for at, mark in picture.symbols().items()} == {(1, 0): WRONG}
    assert picture.places["x"][1] < picture.places["y"][1] and picture.places["y"][0] < 0
    written = {mark.text: (mark.get("fill"), _place(mark)) for mark in picture.marks("text")}
    assert written["0"][0] == INK and written["1"][0] == "white", "legible"
    assert written["a"][1][0] < written["bb"][1][0] < written["ccc"][1][0]
    assert written["bb"][1][0] == written["0"][1][0] and written["a"][1][1] < 0


def test_gold_links_are_framed_solid_if_sure_and_dashed_if_possible():
    picture = Picture(
        charts.links,
        rows=[{"word": word, "across": 3} for word in "xy"],
        columns=[{"word": word} for word in WORDS],
        cells=[
            {"row": 0, "column": 2, "verdict": "right", "text": ""},
            {"row": 1, "column": 0, "verdict": "wrong", "text": ""},
        ],
        gold=[{"row": 0, "column": 2, "sure": True}, {"row": 1, "column": 1, "sure": False}],
    )
    frames = picture.rectangles()
    assert {at: frame.get("stroke-dasharray") for at, frame in frames.items()} == {
        (0, 2): None,
        (1, 1): "3,3",
    }
    squares = {at: mark.get("fill") for at, mark in picture.symbols().items()}
    assert squares == {(0, 2): RIGHT, (1, 0): WRONG}
    boxes = [_box(mark) for mark in picture.marks("rect") if mark.get("stroke-width") == "0.7"]
    assert boxes == [(CELL * i, CELL * j, CELL, CELL) for j in range(2) for i in range(3)]


def test_tree_edges_lead_to_parents_in_the_colour_of_the_constituent():
    picture = Picture(
        charts.tree,
        items=[
            *({"word": w, "parent": p} for w, p in zip(WORDS, (0, 1, 1), strict=True)),
            {"start": 0, "end": 3, "height": 2, "parent": None, "label": "", "verdict": "right"},
            {"start": 1, "end": 3, "height": 1, "parent": 0, "label": "", "verdict": "wrong"},
        ],
    )
    a, b, c = (picture.places[word][0] for word in WORDS)
    top, inner = (round((a + c) / 2, 2), -42), (round((b + c) / 2, 2), -25)
    assert {(x, (to_x, to_y), colour) for x, _, to_x, to_y, colour in picture.rules()} == {
        *((a, top, "#adb5bd"), (b, inner, "#adb5bd"), (c, inner, "#adb5bd")),
        (inner[0], top, WRONG),
    }
    nodes = {mark.get("fill"): _place(mark) for mark in picture.marks("symbol")}
    assert nodes == {RIGHT: top, WRONG: inner}


def test_only_arcs_that_differ_have_colours_and_wrong_or_uncounted_ones_are_broken():
    tip = {"shape": "diamond"}
    arcs = [
        {"dependent": 0, "head": 3, "colour": "#adb5bd", **tip, "line": "solid", "shift": 0},
        {"dependent": 1, "head": 0, "colour": "#123456", **tip, "line": "solid", "shift": 0},
        {"dependent": 1, "head": 1, "colour": "#654321", **tip, "line": "dashed", "shift": 3},
        {"dependent": 2, "head": 1, "colour": "#abcdef", **tip, "line": "dotted", "shift": 0},
    ]
    rows = [{k: v for k, v in row.items() if k != "predicted"} for row in words([3, 0, 2], [0] * 3)]
    picture = Picture(charts.compare, items=[*rows, *arcs])
    gold = {("a", "ccc", GOLD), ("ccc", "bb", GOLD)}
    assert picture.arcs() == gold | {
        *(("A", "CCC", "#adb5bd"), ("BB", "A", "#654321"), ("CCC", "A", "#abcdef"))
    }
    dashes = {mark.get("stroke"): mark.get("stroke-dasharray") for mark in picture.marks("line")}
    assert dashes == {GOLD: "1,0", "#adb5bd": "1,0", "#654321": "4,3", "#abcdef": "1,3"}
    roots = [rule for rule in picture.rules() if rule[-1] == "#123456"]
    assert len(roots) == 1 and roots[0][0] == picture.places["bb"][0]


def test_labels_stand_above_their_words_and_do_not_meet():
    names = ["a", "bb", "ccc", "d"]
    rows = words([3, 3, 0, 3], [0] * 4, names=names)
    for row, label in zip(rows, ["compound:prt", "nsubj:pass", "root", "obl:agent"], strict=True):
        row["label"] = label
    picture = Picture(charts.arcs, words=rows)
    places = [picture.places[row["label"]] for row in rows]
    assert [x for x, _ in places] == [picture.places[name][0] for name in names]
    assert {y for _, y in places} == {picture.places["a"][1] - 14}
    gaps = [right[0] - left[0] for left, right in pairwise(places)]
    halves = [(len(a["label"]) + len(b["label"])) * 5.2 / 2 for a, b in pairwise(rows)]
    assert all(gap > half for gap, half in zip(gaps, halves, strict=True))
    ends = [float(mark.get("d").split(",")[1].split("L")[0]) for mark in picture.marks("line")]
    assert {round(end, 1) for end in ends if end < 0} == {-21.0}, "arcs begin above the labels"
