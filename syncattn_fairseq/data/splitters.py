"""Split sentences into words, as character spans of the text as people wrote it.

Nothing is changed, added or lost: the spans of a sentence cover all of its characters but white
space, in order and without overlap. No word begins with a combining mark, which stays with its
letter.

``uax29`` has the default rules of Unicode (Standard Annex 29), which suit most languages that have
spaces, and needs nothing else. ``elision`` also splits at the apostrophe of elided words. The
others find the words of languages without spaces, each with a library that is an extra: they split
the runs of their own scripts, and the rules of Unicode everything else. ``icu`` is for the scripts
that no other knows, where PyICU is installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import regex

from ..base.errors import DataError, suggest
from ..base.extras import describe_missing
from .languages import know_language
from .spans import Span

Split: TypeAlias = Callable[[str], Sequence[str]]
"""Function that splits a text without white space into words."""

UAX29, ELISION = "uax29", "elision"

_BOUNDARY = regex.compile(r"(?w)\b")
_SPACE = re.compile(r"\s")
#: What belongs to the character before it: marks, and zero-width spaces.
_GLUED = regex.compile(r"(?<=[^ ])[\p{M}\u200b]")

#: Apostrophes of elided words, as in ``l'eau``, ``jusqu'ici`` and ``un'altra``.
_ELIDED = regex.compile(r"(?i)(?<!(?<!\w)(?:o|aujourd|quelqu|presqu|prud|entr))['’](?=\w)")
#: Catalan pronouns after the verb, as in ``dona'm``; and what else is English, as ``John's``.
_AFTER_VERB = regex.compile(r"(?i)(?<=\w\w)['’](?=(?:ls?|ns?|[mst])$)")


class Dictionary(NamedTuple):
    """A word splitter with a dictionary, for a language written without spaces.

    Attributes:
        extra: the extra of this package that installs the splitter.
        libraries: the names of the modules that it needs.
        letters: a pattern of the characters that it splits.
        load: imports a library, and returns the function that splits such characters into words.
    """

    extra: str
    libraries: tuple[str, ...]
    letters: str
    load: Callable[[], Split]


def _load_rjieba() -> Split:
    import rjieba

    split: Split = rjieba.cut
    return split


def _load_fugashi() -> Split:
    import fugashi
    import unidic_lite

    tagger = fugashi.GenericTagger(f'-r /dev/null -d "{unidic_lite.DICDIR}"')
    return lambda text: [word.surface for word in tagger(text)]


def _load_pythainlp() -> Split:
    from pythainlp.tokenize import word_tokenize

    return lambda text: word_tokenize(text, engine="newmm")


def _load_khmercut() -> Split:
    import khmercut

    split: Split = khmercut.tokenize
    return split


def _load_laonlp() -> Split:
    from laonlp.tokenize import word_tokenize

    split: Split = word_tokenize
    return split


def _load_icu() -> Split:
    import icu

    iterator = icu.BreakIterator.createWordInstance(icu.Locale.getRoot())

    def split(text: str) -> list[str]:
        units = icu.UnicodeString(text)  # whose offsets are of UTF-16
        iterator.setText(units)
        return [str(units[begin:end]) for begin, end in pairwise([0, *iterator])]

    return split


DICTIONARIES = {
    "rjieba": Dictionary("chinese", ("rjieba",), r"\p{Han}", _load_rjieba),
    "fugashi": Dictionary(
        "japanese",
        ("fugashi", "unidic_lite"),
        r"\p{Han}\p{Hiragana}\p{Katakana}ー",
        _load_fugashi,
    ),
    "pythainlp": Dictionary("thai", ("pythainlp",), r"\p{Thai}", _load_pythainlp),
    "khmercut": Dictionary("khmer", ("khmercut",), r"\p{Khmer}", _load_khmercut),
    "laonlp": Dictionary("lao", ("laonlp",), r"\p{Lao}", _load_laonlp),
    "icu": Dictionary("icu", ("icu",), r"\p{Line_Break=Complex_Context}", _load_icu),
}
"""Word splitters for languages that are written without spaces, by name."""

SPLITTERS = (UAX29, ELISION, *DICTIONARIES)

#: Word splitters of languages, by ISO 639 code, for which Unicode's rules alone do not suffice.
_CHOICES = {
    **dict.fromkeys(("ca", "fr", "it", "oc"), ELISION),
    **dict.fromkeys(("zh", "yue", "wuu", "lzh"), "rjieba"),
    **{"ja": "fugashi", "th": "pythainlp", "km": "khmercut", "lo": "laonlp"},
    "my": "icu",
}


def choose_splitter(language: str) -> str:
    """Return the name of the recommended word splitter for a language, installed or not.

    Args:
        language: a code or name of the language (:func:`.languages.know_language`); for an unknown
            one, the splitter is ``uax29``.
    """
    return _CHOICES.get(know_language(language) or language, UAX29)


def find_splitter(language: str) -> tuple[str, str]:
    """Return the recommended word splitter for a language if installed, else ``uax29``.

    Args:
        language: a code or name of the language, see `choose_splitter`.

    Returns:
        the name of the recommended splitter, and an empty text; or ``uax29``, and a line that says
        what to install for the recommended one.
    """
    name = choose_splitter(language)
    try:
        check_splitter(name)
    except DataError as fault:
        return UAX29, f"{language}: each letter of this language counts as a word: {fault}"
    return name, ""


def check_splitter(name: str) -> None:
    """Check that there is a word splitter of this name, and that its library is installed.

    Raises:
        DataError: it is missing; the message says which extra to install.
    """
    if name not in SPLITTERS:
        raise DataError(
            f"{name!r} is not a splitter of sentences into words; give one of "
            f"{', '.join(SPLITTERS)}" + suggest(name, SPLITTERS)
        )
    if name in DICTIONARIES:
        for library in DICTIONARIES[name].libraries:
            if find_spec(library) is None:
                raise DataError(describe_missing(DICTIONARIES[name].extra, library))


def split_words(text: str, splitter: str) -> list[Span]:
    """Return the character spans of the words of a sentence.

    Args:
        text: any characters; white space, which is Unicode's, always separates words.
        splitter: the name of the splitter, one of `SPLITTERS`.

    Returns:
        The spans of the words, which cover everything but white space.

    Raises:
        DataError: the splitter does not exist or is not installed (`check_splitter`).
    """
    find = _open_splitter(splitter)
    plain = _SPACE.sub(" ", text)
    bounds = {0, len(text), *(match.start() for match in _BOUNDARY.finditer(plain))}
    if find is not None:
        find(plain, bounds)
    bounds.difference_update(match.start() for match in _GLUED.finditer(plain))
    spans = []
    for begin, end in pairwise(sorted(bounds)):
        # Unicode's words may begin or end with a space, beside a mark that has no letter.
        begin = end - len(plain[begin:end].lstrip(" "))
        end = begin + len(plain[begin:end].rstrip(" "))
        if begin < end:
            spans.append((begin, end))
    return spans


@cache
def _open_splitter(name: str) -> Callable[[str, set[int]], None] | None:
    """Return a function to correct Unicode's word bounds; None if no correction is needed."""
    check_splitter(name)
    if name == UAX29:
        return None
    if name == ELISION:
        return _split_elided
    dictionary = DICTIONARIES[name]
    split = dictionary.load()
    runs = regex.compile(rf"[{dictionary.letters}][{dictionary.letters}\p{{M}}]*")

    def change(text: str, bounds: set[int]) -> None:
        for run in runs.finditer(text):
            begin, end = run.span()
            bounds.difference_update(range(begin + 1, end))
            bounds.add(end)
            bounds.update(begin + bound for bound in _place(split(run[0]), run[0]))

    return change


def _place(words: Sequence[str], text: str) -> Iterator[int]:
    """Yield where words begin in a text, until a word is not the next one of the text."""
    at = 0
    for word in words:
        if not text.startswith(word, at):
            return
        yield at
        at += len(word)


def _split_elided(text: str, bounds: set[int]) -> None:
    for begin, end in pairwise(sorted(bounds)):
        if end - begin > 2:
            word = text[begin:end]
            after_verb = [match.start() for match in _AFTER_VERB.finditer(word)]
            elided = after_verb or [match.end() for match in _ELIDED.finditer(word)]
            bounds.update(begin + bound for bound in elided)
