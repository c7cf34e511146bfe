"""Pictures of a sentence pair, read as XML."""

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.inference import Alignment, Analysis, Parse, Sentence, Translation
from syncattn_fairseq.inference.drawing import (
    INK,
    RIGHT,
    UNKNOWN,
    WRONG,
    DrawnSide,
    draw_analysis,
    draw_pair,
)

GREY = "#adb5bd"


class Picture:
    """A picture whose words differ."""

    def __init__(self, svg: str) -> None:
        self.root: Any = ElementTree.fromstring(svg)
        self.words = self.marks("text")
        self.places = {w.text: (float(w.get("x")), float(w.get("y"))) for w in self.words}

    def marks(self, name: str) -> list[Any]:
        return [*self.root.iter(f"{{http://www.w3.org/2000/svg}}{name}")]

    def colours(self) -> dict[str, str]:
        return {word.text: word.get("fill") for word in self.words}

    def arcs(self) -> set[tuple[str, str, str]]:
        """Return dependent, parent and colour, from the arcs' ends; both bend away from words."""
        found = set()
        for path in self.marks("path"):
            if path.get("stroke"):
                numbers = [*map(float, re.findall(r"-?[\d.]+", path.get("d")))]
                x, y, _, height, _, _, sweep, end, _ = numbers
                is_above = y < 0
                assert height > 8 and bool(sweep) == ((end > x) == is_above)
                found.add((self.name(x, is_above), self.name(end, is_above), path.get("stroke")))
        return found

    def name(self, x: float, is_above: bool) -> str:
        [word] = (w for w, (at, y) in self.places.items() if at == x and (y < 40) == is_above)
        return word

    def lines(self) -> set[tuple[float, ...]]:
        return {
            (*(float(line.get(key)) for key in ("x1", "y1", "x2", "y2")), line.get("stroke"))
            for line in self.marks("line")
        }

    def bounds(self) -> list[float]:
        return [*map(float, self.root.get("viewBox").split())]


def test_both_sides_and_what_is_right():
    source = DrawnSide(["a", "bb", "ccc"], [2, 0, 2], [True, None, False])
    target = DrawnSide(["x", "yyyy", "z"], [None, 1, 0], [None, True, False])
    picture = Picture(draw_pair(source, target, {(0, 1): True, (2, 0): False, (1, 2): None}))
    assert picture.arcs() == {("a", "bb", RIGHT), ("ccc", "bb", WRONG), ("yyyy", "x", RIGHT)}
    assert picture.colours() == {
        **dict.fromkeys(["a", "bb", "x", "yyyy"], INK),
        "ccc": WRONG,
        "z": WRONG,
    }
    place = {word: x for word, (x, _) in picture.places.items()}
    assert picture.lines() == {
        (place["a"], 12, place["yyyy"], 62, GREY),
        (place["bb"], 12, place["z"], 62, GREY),
        (place["ccc"], 12, place["x"], 62, WRONG),
        (place["bb"], -11, place["bb"], -40, UNKNOWN),
        (place["z"], 85, place["z"], 114, WRONG),
    }
    tips = [path.get("d") for path in picture.marks("path") if path.get("fill")]
    assert len(tips) == 5 and all("h6z" in tip for tip in tips)


def test_an_analysis_is_all_grey_and_has_what_the_model_shows():
    source, target = Sentence(["▁the", "▁do", "g"], "sentencepiece"), Sentence(["der"], "none")
    cross = np.array([[0.1, 0.2, 0.7]])
    whole = Analysis(
        source,
        Translation(target),
        source_parse=Parse(source, np.array([[0, 0, 1], [0, 0, 1], [0, 0, 1.0]])),
        alignment=Alignment(source, target, cross),
    )
    picture = Picture(draw_analysis(whole))
    assert {*picture.places} == {"the", "dog", "der"}
    assert picture.arcs() == {("the", "dog", UNKNOWN)}
    assert {line[-1] for line in picture.lines()} == {UNKNOWN, GREY}  # the root, and a link
    assert {*picture.colours().values()} == {INK}
    bare = Picture(draw_analysis(Analysis(source, Translation(target))))
    assert not bare.arcs() and not bare.lines() and {*bare.places} == {"the", "dog", "der"}


def test_right_to_left_scripts_begin_at_the_right():
    picture = Picture(draw_pair(DrawnSide(["אמא", "x"], [2, 0]), DrawnSide(["a", "b"]), {}))
    place = {word: x for word, (x, _) in picture.places.items()}
    assert place["אמא"] > place["x"] and place["a"] < place["b"]


def test_wide_letters_have_their_space():
    def width(word: str) -> float:
        return Picture(draw_pair(DrawnSide([word]), DrawnSide([]), {})).bounds()[2]

    assert width("猫猫猫") > width("cat") + 12
    assert width("e\u0301e\u0301") == width("ee")


def test_long_sentences_are_refused():
    for sides in (([], ["w"] * 251), (["w"] * 251, [])):
        with pytest.raises(DataError, match="^a sentence has 251 words, too many for a picture"):
            draw_pair(*map(DrawnSide, sides), {})


@st.composite
def sides(draw: st.DrawFn) -> DrawnSide:
    words = draw(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), max_size=8))
    parent = st.one_of(st.none(), st.integers(0, len(words)))
    return DrawnSide(words, draw(st.lists(parent, min_size=len(words), max_size=len(words))))


@given(sides(), sides())
def test_any_words_make_xml_that_holds_all_marks(source, target):
    links = {(i, j): None for i in range(len(source.words)) for j in range(len(target.words))}
    picture = Picture(draw_pair(source, target, links))
    assert len(picture.words) == len(source.words) + len(target.words)
    left, top, width, height = picture.bounds()
    assert (picture.root.get("width"), picture.root.get("height")) == (
        f"{width:.0f}",
        f"{height:.0f}",
    )
    for x1, y1, x2, y2, _ in picture.lines():
        for x, y in ((x1, y1), (x2, y2)):
            assert left < x < left + width and top < y < top + height
    assert not picture.root.findall(".//script")
