"""Match the sentences of a parsed file to the lines of the text."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from typing import Generic, TypeVar

from ..base.errors import BadParse, DataError
from ..data.parses import check_tree
from .formats.parsed_sentence import Analysis
from .parser import Parse
from .realign import place_words, realign, reduce_to_characters

LOOK_AHEAD = 10
"""How many lines, and how many sentences, to look ahead when a line and a sentence differ."""

LOOK_FAR = 20_000
"""The most lines in a row that a parser may have left out, such as a batch on which it crashed."""

EMPTY = "empty line"
NO_TREE = "the file of parses has no tree"
DROPPED = "left out by the parser"
SPLIT = "split by the parser"
DIFFERENT = "words differ"
STOPPED = "parser stopped before"

# How many lines and sentences to skip, fewest first. Parsers drop lines, but add no sentences.
_SKIPS = sorted(product(range(LOOK_AHEAD + 1), repeat=2), key=lambda skip: (sum(skip), skip[1]))


def match_parses(
    text_lines: Iterable[str], analyses: Iterable[Analysis], name: str, raw: bool = False
) -> Iterator[Parse | BadParse]:
    """Yield, for each line of the text in order, the parse or the reason why there is none.

    Lines and sentences match in order. Most parsers leave out blank lines, so these and empty
    sentences are skipped. If a sentence does not have the characters of its line (:mod:`.realign`),
    the line gets no parse, and the two are realigned: the parser may have split the line into
    sentences, or left out lines, up to ``LOOK_FAR`` if two sentences in a row then fit again. A
    sentence is never assigned to a line with other characters.

    Args:
        text_lines: the lines of the text.
        analyses: the sentences of the parsed file.
        name: the name of the parsed file, for messages.
        raw: whether the lines are as people write them; then the parses have words and spans.

    Raises:
        DataError: the parsed file has more sentences than the text has lines.
    """
    lines = _Queue(map(_Line, text_lines))
    sentences = _Queue(_Sentence(analysis) for analysis in analyses if analysis.words)
    gap = _Gap()
    for line in lines:
        yield _find_parse(line, lines, sentences, gap, raw)
    left_over = sentences.ahead(1)
    if left_over:
        raise DataError(
            f"{name}: has more sentences than the text has lines; the first extra sentence is "
            f"{' '.join(left_over[0].analysis.words)[:60]!r}; parse exactly this text"
        )


def find_parses(
    text_lines: Sequence[str], analyses: Iterable[Analysis], raw: bool = False
) -> list[Parse | BadParse]:
    """Return the parse of each line of the text, or the reason why there is none.

    The sentences of the parsed file are in any order, and may be of other texts, too. A line and a
    sentence are one if they have the same characters (:mod:`.realign`). Of a line that occurs
    several times, each has the next one of the sentences, or the last one.

    Args:
        text_lines: the lines of the text.
        analyses: the sentences of the parsed file.
        raw: see `match_parses`.
    """
    lines = [_Line(text) for text in text_lines]
    results: list[Parse | BadParse] = [_refuse(DROPPED if line.words else EMPTY) for line in lines]
    waiting: dict[str, deque[int]] = {}
    for place, line in enumerate(lines):
        if line.words:
            waiting.setdefault(line.characters, deque()).append(place)
    found: dict[str, Analysis] = {}
    for sentence in (_Sentence(analysis) for analysis in analyses if analysis.words):
        for characters in dict.fromkeys(sentence.characters):
            if places := waiting.get(characters):
                place = places.popleft()
                results[place] = _parse(lines[place], sentence.analysis, raw)
                found[characters] = sentence.analysis
                break
    for characters in found:
        for place in waiting[characters]:
            results[place] = _parse(lines[place], found[characters], raw)
    return results


@dataclass
class _Gap:
    """State of the search for the next match after lines left out by the parser.

    Attributes:
        lines: how many of the lines that follow are left out.
        looked: how many of them it is useless to look far ahead from.
    """

    lines: int = 0
    looked: int = 0


class _Line:
    def __init__(self, text: str) -> None:
        self.text, self.words = text, text.split()

    @cached_property
    def characters(self) -> str:
        return reduce_to_characters(self.words)


class _Sentence:
    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis

    @cached_property
    def characters(self) -> list[str]:
        """The normalised characters of each way to write the sentence, surface forms first."""
        readings = self.analysis.list_readings()
        return [reduce_to_characters([unit.form for unit in reading]) for reading in readings]

    def fits(self, line: _Line) -> bool:
        return self.analysis.words == line.words or line.characters in self.characters


_Item = TypeVar("_Item")


class _Queue(Generic[_Item]):
    def __init__(self, items: Iterable[_Item]) -> None:
        self._items = iter(items)
        self._seen: deque[_Item] = deque()

    def __iter__(self) -> Iterator[_Item]:
        while self.ahead(1):
            yield self._seen.popleft()

    def ahead(self, count: int) -> list[_Item]:
        self._seen.extend(islice(self._items, max(count - len(self._seen), 0)))
        return list(islice(self._seen, count))

    def skip(self, count: int) -> None:
        for _ in range(count):
            self._seen.popleft()


def _find_parse(
    line: _Line, lines: _Queue[_Line], sentences: _Queue[_Sentence], gap: _Gap, raw: bool
) -> Parse | BadParse:
    """Return the parse of a line, and remove the line's sentences from the queue."""
    lost = gap.lines > 0
    gap.lines, gap.looked = max(gap.lines - 1, 0), max(gap.looked - 1, 0)
    if not line.words:
        return _refuse(EMPTY)
    if lost:
        return _refuse(DROPPED)
    following = sentences.ahead(1)
    if not following:
        return _refuse(STOPPED)
    if not following[0].fits(line):
        following = sentences.ahead(LOOK_AHEAD + 1)
        parts = _split(line, following)
        if parts:
            sentences.skip(parts)
            return _refuse(SPLIT)
        coming = [line, *(later for later in lines.ahead(LOOK_AHEAD) if later.words)]
        skips = _count_skips(coming, following)
        # To skip several sentences is unlikely: lines such as "Yes ." fit by chance.
        if (skips is None or skips[1] > 1) and gap.looked == 0:
            gap.looked = LOOK_AHEAD
            far = _look_far(lines, following)
            if far is not None and (skips is None or far[1] < skips[1]):
                gap.lines, passed = far
                sentences.skip(passed)
                return _refuse(DROPPED)
        skipped_lines, skipped = skips or (1, 1)
        if skipped_lines:
            sentences.skip(min(skipped, 1))
            return _refuse(DIFFERENT if skipped else DROPPED)
        sentences.skip(skipped)
        following = following[skipped:]
    sentences.skip(1)
    return _parse(line, following[0].analysis, raw)


def _split(line: _Line, sentences: list[_Sentence]) -> int:
    """Return how many sentences together make up the line; 0 if none do."""
    joined = ""
    for count, sentence in enumerate(sentences, 1):
        joined += sentence.characters[0]
        if joined == line.characters:
            return count
    return 0


def _count_skips(lines: list[_Line], sentences: list[_Sentence]) -> tuple[int, int] | None:
    """Return how many lines and sentences to skip until one fits the other; None if none fit."""
    for first, second in _SKIPS:
        if first < len(lines) and second < len(sentences) and sentences[second].fits(lines[first]):
            return first, second
    return None


def _look_far(lines: _Queue[_Line], sentences: list[_Sentence]) -> tuple[int, int] | None:
    """Return how many lines and sentences to skip until two in a row fit; None if none fit.

    The lines are those that follow the one that lacks its sentence.
    """
    ahead = lines.ahead(LOOK_FAR)
    numbers = [number for number, line in enumerate(ahead) if line.words]
    places: dict[str, list[int]] = {}
    for place, number in enumerate(numbers):
        places.setdefault(ahead[number].characters, []).append(place)
    for passed, sentence in enumerate(sentences):
        known = [place for reading in sentence.characters for place in places.get(reading, [])]
        for place in sorted(known):
            after = [ahead[number] for number in numbers[place + 1 : place + 2]]
            if all(_follows(after, other) for other in sentences[passed + 1 : passed + 2]):
                return numbers[place], passed
    return None


def _follows(lines: list[_Line], sentence: _Sentence) -> bool:
    """Return whether there is a first line and the sentence fits it."""
    return bool(lines) and sentence.fits(lines[0])


def _parse(line: _Line, analysis: Analysis, raw: bool) -> Parse | BadParse:
    if analysis.heads is None:
        return _refuse(NO_TREE)
    try:
        check_tree(analysis.heads)
    except BadParse as fault:
        return fault
    found = place_words(line.text, analysis) if raw else realign(line.words, analysis)
    return found or _refuse(DIFFERENT)


def _refuse(reason: str) -> BadParse:
    return BadParse(reason, reason)
