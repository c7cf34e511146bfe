"""A picture of one sentence pair: the parses of both sides, and the links between their words.

It is SVG without scripts and styles, which a browser shows and every program of pictures reads. It
is as large as its sentences. Sentences in right-to-left scripts run from right to left.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from unicodedata import bidirectional, combining, east_asian_width
from xml.sax.saxutils import escape

from ..base.errors import DataError
from ..data.words import Link
from .analysis import Analysis

#: Nobody can read the picture of a longer sentence, and it would fill the memory.
MOST_WORDS = 250

#: The colours of right, of wrong and of unjudged arcs (without gold), and of words.
RIGHT, WRONG, UNKNOWN, INK = "#1c5fb8", "#c2410c", "#495057", "#212529"
_LINK = "#adb5bd"

#: Between the middles of the source's words and of the target's, in pixels as all that follows.
_GAP = 74
#: From the middle of words to links, to where arcs end, and to where that of the root begins.
_LINKS, _ARCS, _ROOT = 12, 11, 40
#: Widths of letters of 13 pixels: of most, and of those that are as wide as high.
_LETTER, _WIDE = 6.8, 12.8
_SPACE = 8
_MARGIN = 2

#: What an SVG cannot hold, since XML cannot.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class DrawnSide:
    """A sentence to draw, with an arc from each word to its parent.

    Attributes:
        words: its words.
        parents: each word's parent, from 1, 0 for the root, None for a word without an arc.
        right: for each word, whether its parent is right; None: there is no gold parent.
    """

    words: Sequence[str]
    parents: Sequence[int | None] = ()
    right: Sequence[bool | None] = ()


@dataclass(frozen=True)
class _Side:
    """A sentence with coordinates in the picture.

    Attributes:
        up: -1 if arcs are above the words, 1 below.
        base: the middle of the words, from the top.
        middles: the middle of each word, from the left.
    """

    drawn: DrawnSide
    up: int
    base: int
    middles: list[float] = field(default_factory=list)


def draw_analysis(analysis: Analysis) -> str:
    """Draw a model's parses and word links of a sentence pair as SVG.

    Arcs and links are grey, as there is no gold to compare with.

    Args:
        analysis: parses, links or both; what it lacks is left out.

    Raises:
        DataError: a sentence has too many words for a picture.
    """
    source, target = (
        DrawnSide(sentence.words, parse.heads if parse else ())
        for sentence, parse in (
            (analysis.source, analysis.source_parse),
            (analysis.translation.sentence, analysis.target_parse),
        )
    )
    links = analysis.alignment.links if analysis.alignment else []
    return draw_pair(source, target, dict.fromkeys(links))


def draw_pair(source: DrawnSide, target: DrawnSide, links: Mapping[Link, bool | None]) -> str:
    """Draw a sentence above its translation as SVG, with dependency arcs and word links.

    Wrong arcs and links are orange, right arcs blue and right links grey. Without gold, arcs and
    links are grey.

    Args:
        source: the sentence.
        target: the translation.
        links: linked words, source first, counted from 0, and whether gold has the link; None:
            there is no gold.

    Raises:
        DataError: a sentence has too many words for a picture.
    """
    for side in (source, target):
        check_length(side.words)
    widths = [[*map(_measure, side.words)] for side in (source, target)]
    width = max(map(sum, widths))
    above, below = (
        _Side(side, up, base, _place(side.words, sizes, width))
        for side, sizes, up, base in (
            (source, widths[0], -1, 0),
            (target, widths[1], 1, _GAP),
        )
    )
    top = math.floor(_find_edge(above)) - _MARGIN
    across = math.ceil(width) + 2 * _MARGIN
    down = math.ceil(_find_edge(below)) + _MARGIN - top
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{down}" '
        f'viewBox="{-_MARGIN} {top} {across} {down}" fill="none" font-family="sans-serif" '
        'font-size="13">',
        f'<rect x="{-_MARGIN}" y="{top}" width="{across}" height="{down}" fill="white"/>',
    ]
    parts += (
        _line(
            (above.middles[i], _LINKS),
            (below.middles[j], _GAP - _LINKS),
            WRONG if right is False else _LINK,
            1.4,
        )
        for (i, j), right in links.items()
    )
    for placed in (above, below):
        parts += _draw_arcs(placed)
        parts += _draw_words(placed)
    return "\n".join([*parts, "</svg>\n"])


def check_length(words: Sequence[str]) -> None:
    """Raise `DataError` if a sentence has too many words for a picture."""
    if len(words) > MOST_WORDS:
        raise DataError(
            f"a sentence has {len(words)} words, too many for a picture; draw one of at most "
            f"{MOST_WORDS} words"
        )


def _measure(word: str) -> float:
    """Return the width of a word in the picture, including the space beside the word."""
    letters = (letter for letter in word if not combining(letter))
    width = sum(_WIDE if east_asian_width(letter) in "WF" else _LETTER for letter in letters)
    return max(width, _SPACE) + _SPACE


def _place(words: Sequence[str], sizes: Sequence[float], width: float) -> list[float]:
    """Return the x of each word's middle, for a line of words centred in a width."""
    middles = []
    reach = (width - sum(sizes)) / 2
    for size in sizes:
        middles.append(reach + size / 2)
        reach += size
    is_leftward = any(bidirectional(letter) in ("R", "AL") for word in words for letter in word)
    return [width - middle for middle in middles] if is_leftward else middles


def _list_arcs(side: _Side) -> list[tuple[int, int, str]]:
    """Return the arcs: the dependent counted from 0, the parent counted from 1, and the colour."""
    found = []
    for word, parent in enumerate(side.drawn.parents):
        if parent is not None:
            found.append((word, parent, _colour(_judge(side, word))))
    return found


def _judge(side: _Side, word: int) -> bool | None:
    return side.drawn.right[word] if side.drawn.right else None


def _colour(right: bool | None) -> str:
    return {True: RIGHT, False: WRONG, None: UNKNOWN}[right]


def _rise(side: _Side, word: int, parent: int) -> float:
    """Return the height of an arc; a power below 1 keeps outer arcs clear of inner arcs."""
    span = abs(side.middles[word] - side.middles[parent - 1])
    return float(8 + 2.3 * span**0.6)


def _find_edge(side: _Side) -> float:
    """Return the y of a sentence's outer edge, with its arcs."""
    reach = [float(_LINKS)]
    for word, parent, _ in _list_arcs(side):
        reach.append(_ARCS + _rise(side, word, parent) if parent else _ROOT)
    return side.base + side.up * max(reach)


def _draw_arcs(side: _Side) -> Iterator[str]:
    end, tip = side.base + side.up * _ARCS, side.base + side.up * (_ARCS + 1)
    for word, parent, colour in _list_arcs(side):
        x = side.middles[word]
        if parent == 0:
            yield _line((x, end), (x, side.base + side.up * _ROOT), colour, 1.6)
        else:
            to = side.middles[parent - 1]
            radii = f"{_write(abs(to - x) / 2)} {_write(_rise(side, word, parent))}"
            sweep = int((to > x) == (side.up < 0))
            path = f"M{_write(x)} {end}A{radii} 0 0 {sweep} {_write(to)} {end}"
            yield f'<path d="{path}" stroke="{colour}" stroke-width="1.6"/>'
        corners = f"{_write(x)} {tip - 2.5 * side.up}l-3 {5 * side.up}h6z"
        yield f'<path d="M{corners}" fill="{colour}"/>'


def _draw_words(side: _Side) -> Iterator[str]:
    for number, (word, x) in enumerate(zip(side.drawn.words, side.middles, strict=True)):
        colour = WRONG if _judge(side, number) is False else INK
        text = escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", word))
        yield (
            f'<text x="{_write(x)}" y="{side.base + 4}" text-anchor="middle" '
            f'fill="{colour}">{text}</text>'
        )


def _line(start: tuple[float, float], end: tuple[float, float], colour: str, width: float) -> str:
    (x1, y1), (x2, y2) = start, end
    return (
        f'<line x1="{_write(x1)}" y1="{_write(y1)}" x2="{_write(x2)}" y2="{_write(y2)}" '
        f'stroke="{colour}" stroke-width="{width}"/>'
    )


def _write(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
