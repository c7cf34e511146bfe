"""Character spans of words, and alignment units of words and subwords.

A unit is a word that owns a subword, with the words that own none and whose characters its subwords
hold. Its head is the head of its shallowest word (the first of several). That leaves a tree: the
depth of a unit, that of its shallowest word, is less for its head, and only the root's unit has no
head.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress, count, pairwise
from typing import TypeAlias
from unicodedata import category, normalize

import regex

from ..base.errors import BadParse

Span: TypeAlias = tuple[int, int]
"""Begin and end of a run of a sentence's characters, counted from 0; the end is exclusive."""


def find_owners(pieces: Sequence[Span], words: Sequence[Span]) -> list[int]:
    """Return, for each subword, the index of the word with most of the subword's characters.

    Of several such words, it is the first. A subword without a character of any word goes with
    the next subword that has some, at the end with the last one.

    Args:
        pieces: the spans of the subwords, in order; they do not overlap.
        words: the spans of the words, in order; words may share a span. If there are none, all
            subwords belong to word 0.
    """
    # A word without characters owns nothing, nor does the second word of a span.
    numbers = [n for n, (begin, end) in enumerate(words) if begin < end]
    numbers = [n for n in numbers if n == numbers[0] or words[n] != words[n - 1]]
    owners = []
    for shared in _count_shared(pieces, [words[n] for n in numbers]):
        owners.append(numbers[max(shared, key=shared.__getitem__)] if shared else None)
    known = [owner for owner in owners if owner is not None]
    return _fill(owners, known[-1] if known else 0)


def _count_shared(spans: Sequence[Span], others: Sequence[Span]) -> Iterator[dict[int, int]]:
    """Yield, for each span, how many characters it shares with other spans, by their index."""
    first = 0
    for begin, end in spans:
        while first < len(others) and others[first][1] <= begin:
            first += 1
        shared = {}
        for place in range(first, len(others)):
            if others[place][0] >= end:
                break
            size = min(end, others[place][1]) - max(begin, others[place][0])
            if size > 0:
                shared[place] = size
        yield shared


def _fill(values: Sequence[int | None], following: int) -> list[int]:
    """Return values with each None replaced by the next value, at the end by ``following``."""
    filled = []
    for value in reversed(values):
        following = following if value is None else value
        filled.append(following)
    return filled[::-1]


def find_runs(starts: Sequence[bool]) -> list[Span]:
    """Return the span of each run of items, given for each item whether it begins a run."""
    return [*pairwise([*compress(count(), starts), len(starts)])]


@dataclass(frozen=True)
class Units:
    """A sentence divided into units: a word, or words that share a subword, with their subwords.

    Attributes:
        starts: whether each subword is the first of its unit.
        of_words: the unit, from 0, of each word.
    """

    starts: list[bool]
    of_words: list[int]

    def find_tops(self, heads: Sequence[int]) -> list[int]:
        """Return, for each unit (words that share subwords), its word nearest to the root.

        Args:
            heads: the heads of the words, which form a tree; from 1, 0 for the root.
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
        """Return the dependency head of each unit: a unit's number, from 1, or 0 for the root."""
        above = [heads[top] for top in self.find_tops(heads)]
        return [1 + self.of_words[head - 1] if head else 0 for head in above]

    def map_labels(self, labels: Sequence[str], heads: Sequence[int]) -> list[str]:
        """Return the dependency label of each unit: that of its word nearest to the root."""
        return [labels[top] for top in self.find_tops(heads)]


def find_units(pieces: Sequence[Span], words: Sequence[Span]) -> Units:
    """Group a sentence's words, those that share a subword together, by character spans.

    A word that owns no subword joins the unit whose subwords hold most of its characters, the
    first of several. If none of its characters is in a subword, it joins the next unit, at the end
    the last one.
    """
    owners = find_owners(pieces, words)
    numbers = {owner: number for number, owner in enumerate(dict.fromkeys(owners))}
    starts = [True, *(one != other for one, other in pairwise(owners))][: len(owners)]
    of_words = [numbers.get(word) for word in range(len(words))]
    alone = [word for word, unit in enumerate(of_words) if unit is None]
    held = _count_shared([words[word] for word in alone], pieces)
    for word, shared in zip(alone, held, strict=True):
        sizes: Counter[int] = Counter()
        for place, size in shared.items():
            sizes[numbers[owners[place]]] += size
        of_words[word] = max(sizes, key=sizes.__getitem__, default=None)
    return Units(starts, _fill(of_words, len(numbers) - 1))


def measure_depths(heads: Sequence[int]) -> list[int]:
    """Return the depth of each word in a dependency tree; the root has depth 0.

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
    """Map spans of a sentence to a copy with other spaces, or normalised by a subword model.

    Args:
        spans: the spans.
        sentence: the sentence.
        text: the same with other spaces, or as a subword model normalises the sentence.

    Raises:
        BadParse: the text is of another sentence.
    """
    before, others = align_places(text, sentence)
    moved = []
    for span in spans:
        first, stop = (others[place] for place in span)
        begin = bisect_left(before, before[bisect_right(before, first) - 1])
        begin += len(text[begin:]) - len(text[begin:].lstrip())
        moved.append((begin, bisect_left(before, stop)) if first < stop else (0, 0))
    return moved


def split_span(span: Span, surface: str, forms: Sequence[str]) -> list[Span]:
    """Return the character spans of the words of a multiword token.

    If the words are the parts of its surface but for their case, as in *cannot*, each has its part;
    else, as in *zum*, all of them have the whole.

    Args:
        span: the span of the token in its sentence.
        surface: the characters of the token.
        forms: the words of the token.
    """
    same = "".join(forms).lower() == surface.lower() and sum(map(len, forms)) == len(surface)
    if not same or not all(forms):
        return [span for _ in forms]
    ends = [span[0] + size for size in accumulate(map(len, forms))]
    return [*pairwise([span[0], *ends])]


def align_places(text: str, sentence: str) -> tuple[list[int], list[int]]:
    """Return how many letters are before each position of a text, and of its original sentence.

    A place is where a character begins, or the end. The counts are those of the same letters if
    the texts differ in spaces only, or if the text is what a subword model reads: the sentence with
    compatible characters in place of some (Unicode's NFKC), such as ``...`` for an ellipsis, in
    lower case perhaps, and without what nobody sees.

    Args:
        text: as the subwords join to it.
        sentence: as people wrote it.

    Raises:
        BadParse: the text is of another sentence.
    """
    if "".join(sentence.split()) == "".join(text.split()):
        return _count_characters(text), _count_characters(sentence)
    (letters, before), (others, places) = _count_letters(text), _count_letters(sentence)
    if letters != others:
        raise BadParse(
            "another sentence",
            f"the subwords belong to {text[:60]!r}, not to the sentence {sentence[:60]!r}",
        )
    return before, places


def skip_spaces(spans: Sequence[Span], text: str) -> list[Span]:
    """Return character spans of a text as positions that do not count white space.

    So they hold in another copy of the text, whose spaces differ.
    """
    before = _count_characters(text)
    return [(before[begin], before[end]) for begin, end in spans]


def _count_characters(text: str) -> list[int]:
    return [0, *accumulate(not character.isspace() for character in text)]


def _count_letters(text: str) -> tuple[str, list[int]]:
    """Return what texts that are normalised in another way share, and how much is before places.

    Characters with their marks are one, since normalisation joins and splits these.
    """
    letters: list[str] = []
    before = [0]
    for cluster in regex.findall(r"\X", text):
        plain = normalize("NFKC", cluster).casefold()
        letters += (one for one in plain if category(one)[0] not in "CZ")
        before += [before[-1]] * (len(cluster) - 1) + [len(letters)]
    return "".join(letters), before


def format_spans(spans: Sequence[Span]) -> str:
    """Return spans as the text of a file's line, such as ``0-3 4-7``."""
    return " ".join(f"{begin}-{end}" for begin, end in spans)


def check_spans(spans: Sequence[Span], size: int) -> None:
    """Raise `BadParse` unless spans are in order and within a text of ``size`` characters.

    Words share a span, or do not overlap.
    """
    last = (0, 0)
    for span in spans:
        begin, end = span
        if not (begin < end <= size and (begin >= last[1] or span == last)):
            raise BadParse(
                "spans out of order" if end <= size else "span out of range",
                f"the span {begin}-{end} cannot follow {last[0]}-{last[1]} in a sentence of "
                f"{size} characters: spans are in order, not empty, and within the sentence",
            )
        last = span
