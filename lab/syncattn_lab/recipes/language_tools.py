"""The word splitter, parser and sacrebleu tokeniser for a language of a new corpus."""

from __future__ import annotations

from collections.abc import Iterator

from syncattn_fairseq.data.languages import LANGUAGES, know_language
from syncattn_fairseq.data.splitters import (
    DICTIONARIES,
    choose_splitter,
    find_splitter,
    split_words,
)
from syncattn_fairseq.parsing.stanza_parser import ALIASES

#: Languages that Stanza splits into words, but does not parse.
_NO_TREES = ("my",)


def has_parser(language: str) -> bool:
    """Tell whether Stanza has a parser of a language.

    If Stanza is not installed, it is assumed to parse all known languages.
    """
    code = know_language(language)
    if code is None:
        return False
    try:
        from stanza.resources.default_packages import default_treebanks
    except ImportError:
        return True
    return ALIASES.get(code, code) in default_treebanks and code not in _NO_TREES


def can_split(language: str) -> bool:
    """Tell whether the recommended word splitter of a language is installed."""
    return not find_splitter(language)[1]


def separate_words(line: str, language: str) -> str:
    """Return a sentence as words separated by spaces, from the best splitter installed here.

    If the splitter of its language is missing, each letter of a script without spaces is a word.
    """
    splitter, _ = find_splitter(language)
    return " ".join(line[begin:end] for begin, end in split_words(line, splitter))


def name_scoring(language: str) -> str:
    """Return the sacrebleu tokeniser for a language; ``char`` for scripts without spaces."""
    if know_language(language) == "zh":
        return "zh"
    return "char" if choose_splitter(language) in DICTIONARIES else "13a"


def describe_language(language: str, parsed: bool) -> Iterator[str]:
    """Yield what a user has to know about the tools for a language, such as a missing parser.

    Args:
        language: as the corpus names it.
        parsed: whether the user has parses of its text.
    """
    code = know_language(language)
    if code is None:
        yield (
            f"{language}: is not a known language code, so words are found by Unicode's rules, "
            f"and {'your' if parsed else 'no'} parses are used; if it is a language's name, name "
            f"the files by the language's code, such as train.en (known: {len(LANGUAGES)} "
            "languages)"
        )
        return
    name = LANGUAGES[code]
    if not can_split(language):
        lack = find_splitter(language)[1]
        yield lack if parsed else f"{lack}; until then, _data.yaml has systems without parses"
    elif not parsed and not has_parser(language):
        yield (
            f"{language}: no parser for {name} is known, so _data.yaml has only systems that "
            "need no parses; if you have parses, name them in _data.yaml: here: parsed"
        )
