"""Recognise the language and script of a text from letters and common words."""

from __future__ import annotations

import math
import re
from collections import Counter
from unicodedata import name as name_character

from .common_words import COMMON_WORDS
from .words import MARK

#: Number of lines whose letters are counted, and the fewest letter pairs that tell a language.
PROFILED, _FEWEST_LETTERS = 2000, 200
#: Nats per letter pair by which both sides must fit the other's language better.
_MARGIN = 0.2
#: Scripts that are mixed in one text, and count as one script.
_ONE_SCRIPT = dict.fromkeys(("HIRAGANA", "KATAKANA", "BOPOMOFO", "HALFWIDTH", "IDEOGRAPHIC"), "CJK")
_LETTER = re.compile("[A-Za-z]")


def join_pieces(line: str) -> str:
    """Return a line with its subwords, if it has any, joined into words."""
    if MARK in line:
        return line.replace(" ", "").replace(MARK, " ")
    return line.replace("@@ ", "")


class Profile:
    """Counts of letter pairs and of words in a text, for recognising the text's language."""

    def __init__(self) -> None:
        self.letters: Counter[tuple[str, str]] = Counter()
        self.words: Counter[str] = Counter()
        self.lines = 0

    def add(self, line: str) -> None:
        """Count the letter pairs and words of a line, unless enough lines were counted."""
        if self.lines < PROFILED:
            text = f" {join_pieces(line).lower()} "
            self.letters.update(zip(text, text[1:], strict=False))
            self.words.update(text.split())
            self.lines += 1

    def fit(self, other: Profile) -> float:
        """Return the mean log-probability of this text's letter pairs under another's counts."""
        total = other.letters.total() + len(other.letters) + 1
        logs = (n * math.log((other.letters[x] + 1) / total) for x, n in self.letters.items())
        return math.fsum(logs) / max(self.letters.total(), 1)

    def resembles(self, other: Profile, more_than: Profile) -> bool:
        """Return whether a text is in this text's language rather than in a third text's language.

        False if one of them has too few letters.
        """
        if any(each.letters.total() < _FEWEST_LETTERS for each in (self, other, more_than)):
            return False
        return other.fit(self) - other.fit(more_than) > 2 * _MARGIN


def are_swapped(text: tuple[Profile, Profile], other: tuple[Profile, Profile]) -> bool:
    """Return whether a text's sides are swapped, compared with the languages of another text.

    False if one of them has too few letters.
    """
    if any(each.letters.total() < _FEWEST_LETTERS for each in (*text, *other)):
        return False
    gains = [text[side].fit(other[1 - side]) - text[side].fit(other[side]) for side in (0, 1)]
    return min(gains) > 0 and sum(gains) > _MARGIN


def have_other_names(text: tuple[Profile, Profile], languages: tuple[str, str]) -> bool:
    """Return whether each side has the most common words of the other side's language."""
    bases = [re.split("[-_]", language)[0].lower() for language in languages]
    lists = [COMMON_WORDS.get(base, frozenset()) for base in bases]
    if not all(lists):
        return False
    own = lists[0] - lists[1], lists[1] - lists[0]
    for side, profile in enumerate(text):
        right = sum(profile.words[word] for word in own[side])
        wrong = sum(profile.words[word] for word in own[1 - side])
        if wrong < max(10, 3 * right, profile.words.total() / 50):
            return False
    return True


class Scripts(dict[str, str]):
    """Table of the script of each letter, such as ``LATIN``; "" for other characters."""

    def __missing__(self, character: str) -> str:
        name = name_character(character, "") if character.isalpha() else ""
        script = name.removeprefix("FULLWIDTH ").partition(" ")[0]
        self[character] = script = _ONE_SCRIPT.get(script, script)
        return script


SCRIPTS = Scripts()


def find_script(line: str) -> str:
    """Return the script of most letters of a line, such as ``LATIN``; "" without letters."""
    if line.isascii():
        return "LATIN" if _LETTER.search(line) else ""
    counts = Counter(map(SCRIPTS.__getitem__, line))
    counts.pop("", None)
    return counts.most_common(1)[0][0] if counts else ""
