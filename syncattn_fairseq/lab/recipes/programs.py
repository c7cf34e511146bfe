"""What the configs of others may start: a corpus names tokenisers, parsers and their options.

A corpus of this package may start any program. One of another folder may be a stranger's: there, a
program that can do more than turn text into text has to be named on the command line, too, and
options of our commands that say where to write are refused.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...base.errors import DataError, naming
from .stages import split_commands, split_words

#: Programs that write to standard output only.
_HARMLESS = ("cat", "tr", "kytea")
_TOKENISE = "syncattn-tokenise"
#: Options that name no file to write and no program.
_OPTIONS = {
    "clean": ("max_words", "ratio", "exclude"),
    "score": ("references", "tokenize", "detokenize", "words_by", "subword_marks")
    + ("compound_split", "parts", "by_length"),
    "words": ("--lang", "--normalise", "--aggressive", "--lowercase", "--words", "--workers"),
    "parses": ("--parser", "--lang", "--max-words", "--min-parsed", "--stanza-dir"),
}


def check_programs(facts: Mapping[str, Any], path: Path, programs: Collection[str]) -> None:
    """Check what the facts about a corpus would start.

    Args:
        facts: of a corpus that is not this package's. Whether they have their types is checked
            later.
        path: their file.
        programs: those that the command line names.

    Raises:
        DataError: they start another program, or have an option that is not about text.
    """
    parts = {name: facts[name] for name in _OPTIONS if isinstance(facts.get(name), dict)}
    for name in ("clean", "score"):
        with naming(f"{path}: {name}"):
            _check_names(name, parts.get(name, ()))
    pipelines = {f"words: {name}": text for name, text in parts.get("words", {}).items()}
    if "words_by" in parts.get("score", {}):
        pipelines["score: words_by"] = parts["score"]["words_by"]
    for key, text in pipelines.items():
        with naming(f"{path}: {key}"):
            for command in split_commands(str(text)):
                _check_command(command, programs)
    for language, text in parts.get("parses", {}).items():
        with naming(f"{path}: parses: {language}"):
            words = split_words(str(text))
            _check_names("parses", _flags(words))
            if any(word.removeprefix("--parser=").startswith("command") for word in words):
                raise DataError(
                    "a file may not name a command; set the variable "
                    f"PARSER_{str(language).upper()} to it"
                )


def _check_command(words: Sequence[str], programs: Collection[str]) -> None:
    program = words[0]
    if program == _TOKENISE:
        _check_names("words", _flags(words))
    elif program not in (*_HARMLESS, *programs):
        raise DataError(
            f"a program is started only if the command line names it: --programs {program}"
        )


def _flags(words: Iterable[str]) -> list[str]:
    return [word.partition("=")[0] for word in words if word.startswith("-")]


def _check_names(name: str, names: Iterable[str]) -> None:
    for option in names:
        if option not in _OPTIONS[name]:
            known = ", ".join(_OPTIONS[name])
            raise DataError(f"{option}: here, only {known} are possible")
