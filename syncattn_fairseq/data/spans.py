"""Words as character spans, and alignment units of words and subwords.

A unit is a word that owns a subword, with the words that own none and whose characters its subwords
hold. Its head is the head of its shallowest word (the first of several). That leaves a tree: the
depth of a unit, that of its shallowest word, is less for its head, and only the root's unit has no
head.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, compress, count, pairwise
from typing import TypeAlias

from ..base.errors import BadParse

Span: TypeAlias = tuple[int, int]
"""Where characters of a sentence begin and end, counted from 0; the end is not among them."""


def find_owners(pieces: Sequence[Span], words: Sequence[Span]) -> list[int]:
    """Return the index of each subword's word, from 0.

    That is the word with most of its characters, the first of several. A subword without a
    character of a word goes with the next one that has some, at the end with the last one.

    Args:
        pieces: the spans of the subwords, in order; they do not overlap.
        words: the spans of the words, in order; words may share one. None: all subwords are of
            word 0.
    """
    # A word without characters owns nothing, nor does the second word of a span.
    numbers = [n for n, (begin, end) in enumerate(words) if begin < end]
    numbers = [n for n in numbers if n == numbers[0] or words[n] != words[n - 1]]
    owners: list[int | None] = []
    first = 0
    for begin, end in pieces:
        while first < len(numbers) and words[numbers[first]][1] <= begin:
            first += 1
        best, most, place = None, 0, first
        while place < len(numbers) and words[numbers[place]][0] < end:
            shared = _overlap((begin, end), words[numbers[place]])
            if shared > most:
                best, most = numbers[place], shared
            place += 1
        owners.append(best)
    known = [owner for owner in owners if owner is not None]
    following = known[-1] if known else 0
    filled = []
    for owner in reversed(owners):
        following = following if owner is None else owner
        filled.append(following)
    return filled[::-1]


def _overlap(one: Span, other: Span) -> int:
    return min(one[1], other[1]) - max(one[0], other[0])


def find_runs(starts: Sequence[bool]) -> list[Span]:
    """Return where each run of items begins and ends, from whether each item begins one."""
    return [*pairwise([*compress(count(), starts), len(starts)])]


@dataclass(frozen=True)
class Units:
    """The units of a sentence.

    Attributes:
        starts: whether each subword is the first of its unit.
        of_words: the unit, from 0, of each word.
    """

    starts: list[bool]
    of_words: list[int]

    def find_tops(self, heads: Sequence[int]) -> list[int]:
        """Return the shallowest word, from 0, of each unit.

        Args:
            heads: those of the words, a tree; from 1, 0 for the root.
        """
        if len({*self.of_words}) == len(self.of_words):
            return [*range(len(self.of_words))]
        depths = measure_depths(heads)
        tops: dict[int, int] = {}
        for word, unit in enumerate(self.of_words):
            if unit not in tops or depths[word] < depths[tops[unit]]:
                tops[unit] = word
        return [tops[unit] for unit in range(len(tops))]

    def map_heads(self, heads: Sequence[int]) -> list[int]:
        """Return the heads of the units, from 1, 0 for the root; see `find_tops`."""
        above = [heads[top] for top in self.find_tops(heads)]
        return [1 + self.of_words[head - 1] if head else 0 for head in above]

    def map_labels(self, labels: Sequence[str], heads: Sequence[int]) -> list[str]:
        """Return the labels of the units: those of their shallowest words; see `find_tops`."""
        return [labels[top] for top in self.find_tops(heads)]


def find_units(pieces: Sequence[Span], words: Sequence[Span]) -> Units:
    """Find the units of a sentence; see `find_owners`.

    A word that owns no subword joins the unit whose subwords hold most of its characters, the
    first of several. If none of its characters is in a subword, it joins the next unit, at the end
    the last one.
    """
    owners = find_owners(pieces, words)
    numbers = {owner: number for number, owner in enumerate(dict.fromkeys(owners))}
    starts = [True, *(one != other for one, other in pairwise(owners))][: len(owners)]
    of_words: list[int | None] = []
    first = 0
    for word, span in enumerate(words):
        while first < len(pieces) and pieces[first][1] <= span[0]:
            first += 1
        held: Counter[int] = Counter()
        place = first
        while word not in numbers and place < len(pieces) and pieces[place][0] < span[1]:
            held[owners[place]] += max(0, _overlap(pieces[place], span))
            place += 1
        most = max([*held.values(), 0])
        holders = [owner for owner in held if held[owner] == most > 0]
        of_words.append(numbers.get(min(holders, default=word)))
    following = len(numbers) - 1
    filled = []
    for unit in reversed(of_words):
        following = following if unit is None else unit
        filled.append(following)
    return Units(starts, filled[::-1])


def measure_depths(heads: Sequence[int]) -> list[int]:
    """Return how many heads are above each word of a tree; the root has none above it.

    Raises:
        BadParse: the heads have a cycle.
    """
    depths: list[int | None] = [None] * len(heads)
    for word in range(len(heads)):
        path = []
        while depths[word] is None and heads[word]:
            path.append(word)
            if len(path) > len(heads):
                raise BadParse(
                    "cycle", f"following the heads from word {word + 1} never ends at a root"
                )
            word = heads[word] - 1
        depth = depths[word] or 0
        depths[word] = depth
        for below in reversed(path):
            depth += 1
            depths[below] = depth
    return [depth or 0 for depth in depths]


def move_spans(spans: Sequence[Span], sentence: str, text: str) -> list[Span]:
    """Return spans of a sentence as those of a text with the same characters, but other spaces."""
    places = [place for place, character in enumerate(text) if not character.isspace()]
    return [
        (places[begin], places[end - 1] + 1) if begin < end else (0, 0)
        for begin, end in skip_spaces(spans, sentence)
    ]


def split_span(span: Span, surface: str, forms: Sequence[str]) -> list[Span]:
    """Return the spans of all words of a multiword token.

    If the words are the parts of its surface but for their case, as in *cannot*, each has its part;
    else, as in *zum*, all of them have the whole.

    Args:
        span: the token's.
        surface: its characters.
        forms: its words.
    """
    same = "".join(forms).lower() == surface.lower() and sum(map(len, forms)) == len(surface)
    if not same or not all(forms):
        return [span for _ in forms]
    ends = [span[0] + size for size in accumulate(map(len, forms))]
    return [*pairwise([span[0], *ends])]


def skip_spaces(spans: Sequence[Span], text: str) -> list[Span]:
    """Return spans counted in non-space characters.

    So they hold in another copy of the text, whose spaces differ.
    """
    before = [0, *accumulate(not character.isspace() for character in text)]
    return [(before[begin], before[end]) for begin, end in spans]


def format_spans(spans: Sequence[Span]) -> str:
    """Return spans in the form of a file's line, ``0-3 4-7``."""
    return " ".join(f"{begin}-{end}" for begin, end in spans)


def check_spans(spans: Sequence[Span], size: int) -> None:
    """Raise `BadParse` unless spans are those of words, in order, in a text of so many characters.

    Words share a span, or do not overlap.
    """
    last = (0, 0)
    for span in spans:
        begin, end = span
        if not (begin < end <= size and (begin >= last[1] or span == last)):
            raise BadParse(
                "spans out of order" if end <= size else "span out of range",
                f"the span {begin}-{end} cannot follow {last[0]}-{last[1]} in a sentence of "
                f"{size} characters",
            )
        last = span
