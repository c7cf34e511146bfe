"""The lines that decoding prints besides fairseq's own: parses, distances and links.

::

    X-12  source      subword     1 1 1      the subword that each one attends to most, from 0
    X-12  source      word        2 0        the same for words, from 1, 0 = root
    X-12  hypothesis  subword     0 0 1
    X-12  hypothesis  word        0 1
    X-12  source      distance-1  0.2 -0.1   syntactic distances of layer 1, mean over heads
    L-12  6           0-0 1-0                links of decoder layer 6, source-target, from 0
    L-12  6.3         0-0 1-0                links of its third head alone

Columns are separated by tabs; 12 is the number of the sentence.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, TypeAlias

from ..base.numbers import read_decimal, read_whole

Link: TypeAlias = tuple[int, int]
"""A source and a target position, both 0-based."""

#: Distances that models print are between -1 and 1.
_LARGEST_DISTANCE = 1e6
_LINE = re.compile(
    r"X-(?P<parse>\d{1,9})\t(?P<side>source|hypothesis)\t"
    r"(?:(?P<unit>subword|word)|distance-(?P<gated>\d{1,9}))\t(?P<numbers>.*)"
    r"|L-(?P<links>\d{1,9})\t(?P<layer>\d{1,9})(?:\.(?P<head>\d{1,9}))?\t(?P<pairs>.*)",
    re.ASCII,
)


@dataclass(frozen=True)
class HeadsOf:
    """Whose heads a line holds: the positions that each ``unit`` of a ``side`` attends to."""

    kind: ClassVar = "X"
    side: str
    unit: str

    def __str__(self) -> str:
        return f"{self.side}\t{self.unit}"


@dataclass(frozen=True)
class DistancesOf:
    """Whose syntactic distances a line holds; layers count from 1."""

    kind: ClassVar = "X"
    side: str
    layer: int

    def __str__(self) -> str:
        return f"{self.side}\tdistance-{self.layer}"


@dataclass(frozen=True, order=True)
class LinksOf:
    """Whose links a line holds: those of a decoder layer and head, from 1; 0 is all heads' mean."""

    kind: ClassVar = "L"
    layer: int
    head: int = 0

    def __str__(self) -> str:
        return f"{self.layer}.{self.head}" if self.head else str(self.layer)

    @property
    def name(self) -> str:
        """What to call it: ``layer 6``, or ``layer 6 head 3``."""
        return f"layer {self.layer}" + (f" head {self.head}" if self.head else "")


Topic: TypeAlias = HeadsOf | DistancesOf | LinksOf


class AnalysisLine(NamedTuple):
    """One line: the number of a sentence, from 0, and heads, distances or links."""

    sentence: int
    topic: Topic
    values: list[Any]


def write_line(sentence: int, topic: Topic, values: Iterable[Any]) -> str:
    """Return a line without its end; see `AnalysisLine`."""
    if isinstance(topic, LinksOf):
        texts = [f"{source}-{target}" for source, target in values]
    elif isinstance(topic, DistancesOf):
        texts = [f"{value:.4f}" for value in values]
    else:
        texts = [str(value) for value in values]
    return f"{topic.kind}-{sentence}\t{topic}\t{' '.join(texts)}"


def read_line(line: str) -> AnalysisLine | None:
    """Read a line of `write_line`; None for any other; `ValueError`: values of another kind."""
    match = _LINE.fullmatch(line)
    if not match:
        return None
    if match["links"]:
        topic: Topic = LinksOf(int(match["layer"]), int(match["head"] or 0))
        return AnalysisLine(int(match["links"]), topic, read_links(match["pairs"]))
    sentence, side, numbers = int(match["parse"]), match["side"], match["numbers"]
    if match["unit"]:
        heads = _read_numbers(numbers, read_whole, "heads")
        return AnalysisLine(sentence, HeadsOf(side, match["unit"]), heads)
    distances = _read_numbers(numbers, _read_distance, "distances")
    return AnalysisLine(sentence, DistancesOf(side, int(match["gated"])), distances)


@lru_cache(maxsize=2**16)
def make_link(source: int, target: int) -> Link:
    """Return a link; the same object each time, since a large text has few different ones."""
    return source, target


def read_links(text: str) -> list[Link]:
    """Read fairseq's links, ``0-0 1-0``, source and target, from 0; else `ValueError`."""
    try:
        pairs = (token.split("-") for token in _tokens(text))
        return [make_link(read_whole(source), read_whole(target)) for source, target in pairs]
    except ValueError:
        raise ValueError(f"expected links like 3-4, got {text[:60]!r}") from None


def _read_numbers(text: str, read: Callable[[str], Any], name: str) -> list[Any]:
    try:
        return [read(token) for token in _tokens(text)]
    except ValueError:
        raise ValueError(f"expected {name}, got {text[:60]!r}") from None


def _read_distance(text: str) -> float:
    distance = read_decimal(text)
    if abs(distance) >= _LARGEST_DISTANCE:
        raise ValueError(f"{text!r} is no distance")
    return distance


def _tokens(text: str) -> list[str]:
    """Split at spaces only: a tab would start another column, which is an error."""
    return [token for token in text.split(" ") if token]
