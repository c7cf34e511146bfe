"""Find faults of a parallel text: test sentences in the training text, swapped sides, and more.

Each text is read once, line by line. Of the training text, eight bytes for each pair are kept; of
the others, the sentences.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

from ..base.errors import DataError, shorten
from ..base.text import read_lines
from .parallel_text import simplify
from .text_profile import SCRIPTS, Profile, are_swapped, find_script, have_other_names, join_pieces
from .words import MARK

#: Name of the split that models are trained on.
TRAINING = "train"
#: Share of sentences from which a fault gets a line, and faults that get one at once.
_NOTABLE, _ALWAYS = 0.01, ("test_in_training", "twice", "swapped", "forms")
#: The fewest lines that show how a text is written, and their share of it.
_FEWEST_ENDS, _ENDS = 5, 0.05
#: Lengths are compared in steps of a tenth of a factor e; 11 are a factor of 3.
_STEPS, _FAR = 10, 11
#: Added to lengths in characters, so that short sentences may differ.
_SLACK = 10
#: Scripts without spaces between words, of which two characters count as one.
_UNSEGMENTED = ("CJK", "THAI", "LAO", "KHMER", "MYANMAR")
_WORD = re.compile(r"[^\W_]+")
#: Entities and tags of HTML, but not the escapes of the Moses tokenizer, which are words; and UTF-8
#: that was read as Latin-1.
_ODD = re.compile(
    r"\ufffd|\S&(?:amp|lt|gt|quot|apos|nbsp|#\d+);|</?(?:[abipu]|br|em|div|span|font|strong)\b[^<>]*>"
    "|Ã[\x80-\xbfŸ„–œ]|â€|Â[\xa0-\xbf]"
)


_Place: TypeAlias = tuple[int, int, bool]
"""The index of a text, the number of a pair in the text, and whether the sentence is long."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault found in a corpus by `examine`, with a description and advice."""

    about: str
    advice: str = ""


_EXCLUDE = (
    "leave these sentences out of the training text: syncattn-clean --exclude, or in a recipe "
    "clean: {exclude: test}"
)
#: All kinds of faults, by the names of their limits in `Limits`.
KINDS = {
    "test_in_training": Kind("test sentences are in the training text", _EXCLUDE),
    "valid_in_training": Kind(
        "validation sentences are in the training text",
        "take other sentences, or leave these out of the training text",
    ),
    "short_in_training": Kind("short sentences are in the training text, too"),
    "repeated": Kind(
        "pairs repeat earlier ones", "leave them out unless so many repetitions are meant"
    ),
    "twice": Kind("the same file is given twice", "give a different file for each"),
    "swapped": Kind("source and target are swapped", "exchange the two files"),
    "forms": Kind("raw text, words and subwords are mixed", "prepare all texts in the same way"),
    "untranslated": Kind("pairs have the same text on both sides", "leave them out"),
    "uneven": Kind(
        "pairs have a side three times as long as usual", "check that the lines belong together"
    ),
    "script": Kind("lines are in another script", "check that these lines belong to the text"),
    "empty": Kind("pairs have an empty side", "syncattn-clean leaves these pairs out"),
    "odd": Kind(
        "pairs have entities, tags or damaged letters", "mend these pairs, or leave them out"
    ),
}


@dataclass(frozen=True)
class Limits:
    """For each kind of fault, the share of faulty sentences from which the fault is severe.

    Each attribute but the first has the name of a kind in `KINDS`. None: it is never severe.

    Attributes:
        words: test sentences of fewer words may be in the training text; two characters of a script
            without spaces count as a word.
        test_in_training: 0 by default: a single one is severe.
        valid_in_training: share of validation sentences.
        short_in_training: share of test and validation sentences of fewer words.
        repeated: share of training pairs.
        twice: 0 by default: all sentences of the file count.
        swapped: 0 by default: all sentences of both files count.
        forms: all sentences of the file count.
        untranslated: share of pairs; 0.5 by default.
        uneven: share of pairs.
        script: share of lines of a side.
        empty: share of pairs.
        odd: share of pairs.
    """

    words: int = 8
    test_in_training: float | None = 0
    valid_in_training: float | None = None
    short_in_training: float | None = None
    repeated: float | None = None
    twice: float | None = 0
    swapped: float | None = 0
    forms: float | None = None
    untranslated: float | None = 0.5
    uneven: float | None = None
    script: float | None = None
    empty: float | None = None
    odd: float | None = None

    def are_passed(self, kind: str, count: int, total: int) -> bool:
        """Return whether ``count`` faults among ``total`` sentences reach the limit of a kind."""
        limit: float | None = getattr(self, kind)
        return limit is not None and count >= limit * total


def read_limits(values: Mapping[str, Any]) -> Limits:
    """Make `Limits` from names and numbers; raise `DataError` for a bad name or share."""
    known = [each.name for each in fields(Limits)]
    for name, value in values.items():
        if name not in known:
            raise DataError(f"{name}: no such kind of fault; choose from {', '.join(known)}")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if name == "words":
            if type(value) is not int or value < 1:
                raise DataError(f"words: {value!r}: give a whole number from 1")
        elif value is not None and not (number and 0 <= value <= 1):
            raise DataError(f"{name}: {value!r}: give a share from 0 to 1, or null for no limit")
    return Limits(**values)


@dataclass(frozen=True)
class Text:
    """A parallel text to examine, with its split and its file names.

    Attributes:
        split: ``train``, ``valid`` or ``test``; a split may have several texts.
        names: the names of the source and the target file in findings.
        pairs: the source and target lines; they are read once.
    """

    split: str
    names: tuple[str, str]
    pairs: Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Finding:
    """A fault of a number of sentences in a split, with an example.

    Attributes:
        kind: a name in `KINDS`.
        split: the split that the sentences are in.
        count: the number of sentences that have the fault.
        total: the number of sentences of the split.
        example: the first of these sentences, ``FILE:LINE`` and perhaps more.
        severe: whether the text should not be used with this fault.
        advice: what to do.
    """

    kind: str
    split: str
    count: int
    total: int
    example: str
    severe: bool
    advice: str

    @property
    def share(self) -> float:
        """The share of the split's sentences with the fault, from 0 to 1."""
        return self.count / max(self.total, 1)

    @property
    def is_notable(self) -> bool:
        """Whether to show the fault: severe, of a kind always shown, or in 1 % of sentences."""
        return self.severe or self.kind in _ALWAYS or self.share >= _NOTABLE

    def __str__(self) -> str:
        """Return the fault on one line, with the number of sentences, an example and advice."""
        size = f"{self.count:,} of {self.total:,}, {100 * self.share:.3g} %"
        about, advice = KINDS[self.kind].about, f"; {self.advice}" if self.advice else ""
        return f"{self.split}: {about} ({size}), such as {self.example}{advice}"


def examine(
    texts: Sequence[Text],
    languages: tuple[str, str],
    limits: Limits = Limits(),
    excluded: Collection[str] = (),
) -> list[Finding]:
    """Examine the texts of a corpus; return the faults found, severe faults first.

    Args:
        texts: all texts of the corpus; missing splits are not compared.
        languages: the source and the target language.
        limits: the shares of sentences from which a fault is severe.
        excluded: splits whose sentences are left out of the training text later.

    Raises:
        DataError: a text cannot be read.
    """
    held_out = [text for text in texts if text.split != TRAINING]
    examination = _Examination(limits.words)
    for text in [*held_out, *(text for text in texts if text.split == TRAINING)]:
        examination.read(text)
    found = [*examination.list_findings(languages)] if texts else []
    made = []
    for kind, split, count, total, example in found:
        leaves_out = kind.endswith("_in_training") and split in excluded
        severe = not leaves_out and limits.are_passed(kind, count, total)
        advice = (
            ("clean leaves these sentences out of the training text")
            if leaves_out
            else KINDS[kind].advice
        )
        made.append(Finding(kind, split, count, total, example, severe, advice))
    return sorted(made, key=lambda finding: not finding.severe)


def examine_files(
    prefixes: Mapping[str, Path | str], languages: tuple[str, str], limits: Limits = Limits()
) -> list[Finding]:
    """Examine the files of a corpus; return the faults found, severe faults first.

    Args:
        prefixes: for each split, ``PREFIX`` of its files ``PREFIX.LANGUAGE``.
        languages: the source and the target language.
        limits: the shares of sentences from which a fault is severe.

    Raises:
        DataError: a file cannot be read, or the sides of a text differ in length.
    """
    source, target = languages
    texts = [open_files(x, f"{y}.{source}", f"{y}.{target}") for x, y in prefixes.items()]
    return examine(texts, languages, limits)


def open_files(split: str, source: Path | str, target: Path | str) -> Text:
    """Return the parallel text in two files, which are opened only when the text is read."""
    return Text(split, (str(source), str(target)), _read_files(source, target))


def _read_files(source: Path | str, target: Path | str) -> Iterator[tuple[str, str]]:
    try:
        yield from zip(read_lines(source), read_lines(target), strict=True)
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{target}: has another number of lines than {source}") from None


@dataclass
class _Tally:
    """The number of sentences with something in common, and the first of them."""

    count: int = 0
    example: str = ""

    def add(self, example: str) -> None:
        self.count += 1
        self.example = self.example or example


@dataclass
class _Side:
    """Statistics of the file of one language."""

    name: str
    digest: int = 0
    ends: list[int] = field(default_factory=lambda: [0, 0])
    pieces: list[int] = field(default_factory=lambda: [0, 0])
    scripts: dict[str, _Tally] = field(default_factory=lambda: defaultdict(_Tally))
    profile: Profile = field(default_factory=Profile)

    def add(self, line: str, number: int) -> None:
        self.digest = hash((self.digest, line))
        self.profile.add(line)
        if MARK in line:
            self.pieces[0] += 1
        elif "@@ " in line:
            self.pieces[1] += 1
        elif line.endswith(".") and len(line) > 1:
            self.ends[line[-2] == " "] += 1
        script = find_script(line)
        if script:
            tally = self.scripts[script]
            tally.add("" if tally.count else f"{self.name}:{number} ({script}): {_show(line)}")

    def describe_form(self, lines: int) -> str | None:
        """Return the file's form (raw text, words, subwords); None if the form is unclear."""
        if 2 * self.pieces[0] > lines:
            return "subwords of sentencepiece"
        if self.pieces[1] and 100 * self.pieces[1] >= lines:
            return "subwords of subword-nmt"
        if sum(self.ends) < max(_FEWEST_ENDS, _ENDS * lines):
            return None
        glued, alone = self.ends
        return "words" if alone > 9 * glued else "raw text" if glued > 9 * alone else None


class _Text:
    """Statistics of a parallel text."""

    def __init__(self, text: Text) -> None:
        self.split, self.names, self.size = text.split, text.names, 0
        self.sides = _Side(text.names[0]), _Side(text.names[1])
        self.profiles = self.sides[0].profile, self.sides[1].profile

    def place(self, number: int) -> str:
        return f"{self.names[0]}:{number}"

    def list_forms(self) -> list[str | None]:
        return [side.describe_form(self.size) for side in self.sides]


class _Examination:
    """Reader of texts, the training texts last, which counts faults."""

    def __init__(self, words: int) -> None:
        self._words = words
        self._texts: list[_Text] = []
        self._tallies: dict[tuple[str, str], _Tally] = defaultdict(_Tally)
        #: Ratios of lengths by split: how many pairs have each, and the first of them.
        self._ratios: dict[str, dict[int, _Tally]] = defaultdict(lambda: defaultdict(_Tally))
        #: Sentences of each side that must not be learnt: where they are; whether they are long.
        self._held_out: tuple[dict[str, list[_Place]], ...] = (defaultdict(list), defaultdict(list))
        self._leaked: dict[tuple[int, int], tuple[bool, str]] = {}
        self._pairs = array("q")

    def read(self, text: Text) -> None:
        known = _Text(text)
        self._texts.append(known)
        learnt, index = text.split == TRAINING, len(self._texts) - 1
        ratios, (first, second) = self._ratios[text.split], known.sides
        for number, pair in enumerate(text.pairs, 1):
            source, target = keys = _key(pair[0]), _key(pair[1])
            known.size = number
            first.add(pair[0], number)
            second.add(pair[1], number)
            if not source or not target:
                self._count("empty", known, number, "")
                if learnt:
                    self._pairs.append(hash((index, number)))  # no repetition
                continue
            if source == target and any(map(str.isalpha, source)):
                self._count("untranslated", known, number, pair[0])
            for side, line in enumerate(pair):
                if odd := _ODD.search(line):
                    self._count("odd", known, number, line[max(odd.start() - 20, 0) :], side)
                    break
            ratio = math.log((len(source) + _SLACK) / (len(target) + _SLACK))
            tally = ratios[round(_STEPS * ratio)]
            tally.add("" if tally.count else f"{known.place(number)}: {_show(pair[0])}")
            if learnt:
                self._pairs.append(hash(keys))
                for sentences, key in zip(self._held_out, keys, strict=True):
                    if key in sentences:
                        self._note(sentences[key], known.place(number))
            else:
                for sentences, key, line in zip(self._held_out, keys, pair, strict=True):
                    sentences[key].append((index, number, _count_words(line) >= self._words))

    def _count(self, kind: str, text: _Text, number: int, line: str, side: int = 0) -> None:
        tally = self._tallies[kind, text.split]
        example = "" if tally.count else f"{text.names[side]}:{number}"
        tally.add(f"{example}: {_show(line)}" if line and example else example)

    def _note(self, places: list[_Place], place: str) -> None:
        for index, number, is_long in places:
            known = self._leaked.get((index, number))
            if known is None or is_long > known[0]:
                self._leaked[index, number] = is_long, place

    def list_findings(self, languages: tuple[str, str]) -> Iterator[tuple[str, str, int, int, str]]:
        """Yield the kind, split, count, total and first example of each fault."""
        totals: Counter[str] = Counter()
        for text in self._texts:
            totals[text.split] += text.size
        self._count_leaked()
        self._count_uneven()
        for (kind, split), tally in sorted(self._tallies.items()):
            yield kind, split, tally.count, totals[split], tally.example
        yield from self._find_repeated(totals[TRAINING])
        yield from self._find_other_scripts()
        for kind, text, example in (*self._find_twice(), *self._find_mixed(languages)):
            yield kind, text.split, text.size, totals[text.split], example

    def _count_leaked(self) -> None:
        for (index, number), (is_long, place) in sorted(self._leaked.items()):
            text = self._texts[index]
            kind = "short" if not is_long else "test" if text.split.startswith("test") else "valid"
            example = f"{text.place(number)}, which is {place}"
            self._tallies[f"{kind}_in_training", text.split].add(example)

    def _count_uneven(self) -> None:
        for split, ratios in self._ratios.items():
            half, seen, middle = sum(each.count for each in ratios.values()) / 2, 0, 0
            for middle in sorted(ratios):
                seen += ratios[middle].count
                if seen >= half:
                    break
            far = [tally for step, tally in ratios.items() if abs(step - middle) > _FAR]
            if far:
                counted = sum(tally.count for tally in far)
                self._tallies["uneven", split] = _Tally(counted, far[0].example)

    def _find_repeated(self, total: int) -> Iterator[tuple[str, str, int, int, str]]:
        import numpy as np

        pairs = np.frombuffer(self._pairs, np.int64) if self._pairs else np.empty(0, np.int64)
        _, first = np.unique(pairs, return_index=True)
        repeated = len(pairs) - len(first)
        if repeated:
            again = np.ones(len(pairs), bool)
            again[first] = False
            number = int(again.argmax()) + 1
            for text in (text for text in self._texts if text.split == TRAINING):
                if number <= text.size:
                    yield "repeated", TRAINING, repeated, total, text.place(number)
                    break
                number -= text.size

    def _find_other_scripts(self) -> Iterator[tuple[str, str, int, int, str]]:
        for side in (0, 1):
            usual: Counter[str] = Counter()
            learnt = [text for text in self._texts if text.split == TRAINING] or self._texts
            for text in learnt:
                for script, tally in text.sides[side].scripts.items():
                    usual[script] += tally.count
            [(main, _)] = usual.most_common(1) or [("", 0)]
            for text in self._texts if main else ():
                scripts = text.sides[side].scripts.items()
                others = [tally for script, tally in scripts if script != main]
                if others:
                    count = sum(tally.count for tally in others)
                    yield "script", text.split, count, text.size, others[0].example

    def _find_twice(self) -> Iterator[tuple[str, _Text, str]]:
        files: dict[tuple[int, int], str] = {}
        for text in self._order():
            for side in text.sides if text.size else ():
                other = files.setdefault((text.size, side.digest), side.name)
                if other is not side.name:
                    yield "twice", text, f"{side.name}, which is {other}"
                    break

    def _find_mixed(self, languages: tuple[str, str]) -> Iterator[tuple[str, _Text, str]]:
        """Yield texts with swapped sides, or written in another form than the first text."""
        first, *others = self._order()
        usual, forms = first.profiles, first.list_forms()
        if have_other_names(usual, languages):
            yield "swapped", first, " and ".join(first.names)
            usual = usual[1], usual[0]
        for text in others:
            if have_other_names(text.profiles, languages) or are_swapped(text.profiles, usual):
                yield "swapped", text, " and ".join(text.names)
        for text in others:
            both = zip(text.names, text.list_forms(), first.names, forms, strict=True)
            for name, own, other, form in both:
                if own and form and own != form:
                    yield "forms", text, f"{name} ({own}) beside {other} ({form})"
                    break

    def _order(self) -> list[_Text]:
        """Return the texts, the training texts first."""
        return sorted(self._texts, key=lambda text: text.split != TRAINING)


def _key(line: str) -> str:
    """Return a key that is equal for sentences that differ only in case, spaces or subwords."""
    if MARK in line:
        line = line.replace(MARK, "")
    elif "@@ " in line:
        line = line.replace("@@ ", "")
    return simplify(line)


def _count_words(line: str) -> int:
    """Count words; two characters of a script without spaces count as a word."""
    count = 0
    for word in _WORD.findall(join_pieces(line)):
        is_unsegmented = SCRIPTS[word[0]] in _UNSEGMENTED
        count += (len(word) + 1) // 2 if is_unsegmented else 1
    return count


def _show(line: str) -> str:
    return repr(shorten(join_pieces(line).strip(), 40))
