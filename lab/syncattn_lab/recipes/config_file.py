"""Read YAML settings from untrusted files, in time and memory bounded by the file's size.

A corpus of this package may start any program. One of another folder may be a stranger's: there, a
program that can do more than turn text into text has to be named on the command line, too, and
options of our commands that say where to write are refused.
"""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import lru_cache
from io import StringIO
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError
from yaml.error import MarkedYAMLError
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.files import read_text_file

from .stages import read_options, split_commands

#: The most characters of a file, levels of its lists, and digits of its whole numbers.
LARGEST = 100_000
DEEPEST = 20
_DIGITS = 18
#: Programs that write to standard output only.
_HARMLESS = ("cat", "tr", "kytea")
_TOKENISE = "syncattn-tokenise"
#: Options that name neither a file to write nor a program, by key of ``_data.yaml``.
_OPTIONS = {
    "clean": ("max_words", "ratio", "exclude"),
    "score": ("references", "tokenize", "detokenize", "words_by", "subword_marks")
    + ("compound_split", "parts", "by_length"),
    "words": ("--lang", "--normalise", "--aggressive", "--lowercase", "--words", "--workers")
    + ("--rules",),
    "parses": ("--parser", "--lang", "--max-words", "--min-parsed", "--stanza-dir"),
}


def read_config(path: Path) -> Any:
    """Read a YAML file of settings as hydra reads it; callers must not change the result.

    Raises:
        DataError: the file is missing, is not YAML with names and values, is larger or deeper than
            any settings, or has an alias, which would stand for any number of values.
    """
    try:
        return _parse(read_text_file(path, 4 * LARGEST), path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except MarkedYAMLError as error:
        location = f"{path}:{error.problem_mark.line + 1}" if error.problem_mark else str(path)
        raise DataError(f"{location}: not YAML: {error.problem or error.context}") from None
    except DataError:
        raise
    except (YAMLError, OmegaConfBaseException, OSError, ValueError) as error:
        raise DataError(f"{path}: not YAML: {first_line(error)}") from None


@lru_cache(maxsize=512)  # the systems of a corpus share most of their files
def _parse(text: str, path: Path) -> DictConfig:
    _check_text(text, path)
    config = OmegaConf.load(StringIO(text))
    if not isinstance(config, DictConfig) or not config:
        raise DataError(f"{path}: not a list of names and values; write NAME: VALUE")
    _check_values(OmegaConf.to_container(config), path)
    return config


def read_value(text: str) -> Any:
    """Return the value of ``SECTION.OPTION=VALUE``; raise `DataError` if it is not YAML."""
    name, _, value = text.partition("=")
    _check_values(value, name)  # OmegaConf would replace ${...}
    try:
        _check_text(value, text[:200])
        setting = OmegaConf.select(OmegaConf.from_dotlist([text]), name)
    except (YAMLError, OmegaConfBaseException, ValueError) as error:
        raise DataError(f"{text[:200]}: the value cannot be read: {first_line(error)}") from None
    setting = OmegaConf.to_container(setting) if OmegaConf.is_config(setting) else setting
    _check_values(setting, text[:200])
    return setting


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or the error's type for an empty message."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _check_text(text: str, location: object) -> None:
    if len(text) > LARGEST:
        raise DataError(
            f"{location}: the file has more than {LARGEST:,} characters, too many for a config; "
            "check the path"
        )
    depth = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        at = f"{location}:{event.start_mark.line + 1}"
        if isinstance(event, AliasEvent):
            raise DataError(
                f"{at}: *{event.anchor} is an alias of YAML; write the value again in place of "
                "the alias"
            )
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEEPEST:
            raise DataError(
                f"{at}: values are nested more than {DEEPEST} levels deep; write them flatter"
            )


def _check_values(value: Any, location: object) -> None:
    """Raise `DataError` if a name or value cannot be passed to a program as an argument."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise DataError(
                    f"{location}: the name {name!r} is not text; put it into quotes: {str(name)!r}"
                )
            _check_values(name, location)
            _check_values(inner, location)
    elif isinstance(value, list):
        for inner in value:
            _check_values(inner, location)
    elif isinstance(value, str):
        if "${" in value:
            raise DataError(
                f"{location}: {value[:60]}: references are not supported; write the value in "
                "place of ${...}"
            )
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise DataError(f"{location}: {value[:60]!r} has characters that are not text")
    elif isinstance(value, bytes):
        raise DataError(f"{location}: {value[:60]!r} is not text; give text")
    elif isinstance(value, int) and abs(value) >= 10**_DIGITS:
        raise DataError(f"{location}: a number of more than {_DIGITS} digits")


def need(place: object, values: Any, names: Iterable[str]) -> None:
    """Raise `DataError` unless ``values`` is a mapping with all the keys in ``names``."""
    if not isinstance(values, Mapping):
        raise DataError(f"{place}: expected names and values, not {values!r}")
    for name in names:
        if name not in values:
            raise DataError(f"{place}: the key {name!r} is missing")


def make(kind: type[Any], place: object, values: Any, hidden: Collection[str] = ()) -> Any:
    """Make an instance of a dataclass from the values of a file, and check their types.

    Args:
        kind: the dataclass.
        place: the beginning of messages, usually the file.
        values: a mapping from names of fields to values.
        hidden: fields that the message about an unknown key does not list.

    Raises:
        DataError: a value is missing, unknown or of another type, or a whole number is below 1.
    """
    known = {f.name: f for f in fields(kind)}
    needed = [n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING]
    need(place, values, needed)
    if unknown := sorted(values.keys() - known.keys()):
        known_keys = ", ".join(name for name in known if name not in hidden)
        raise DataError(f"{place}: unknown key {unknown[0]!r}; known are {known_keys}")
    for name, hint in get_type_hints(kind).items():
        if name in values and not _fits(values[name], hint):
            hint = known[name].type
            raise DataError(f"{place}: {name}: {values[name]!r} is not of type {hint}")
        if type(values.get(name)) is int and values[name] < 1:
            raise DataError(f"{place}: {name}: {values[name]}: give a whole number, at least 1")
    return kind(**values)


def _fits(value: Any, hint: Any) -> bool:
    parts = get_args(hint)
    if hint is Any:
        return True
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if get_origin(hint) is list:
        return isinstance(value, list) and all(_fits(item, parts[0]) for item in value)
    if get_origin(hint) is dict:
        return isinstance(value, dict) and all(
            _fits(key, parts[0]) and _fits(item, parts[1]) for key, item in value.items()
        )
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def check_programs(facts: Mapping[str, Any], path: Path, programs: Collection[str]) -> None:
    """Raise `DataError` if the file of a user's corpus would start a program that is not allowed.

    Allowed are ``programs``, which the command line names, and a few that only write to standard
    output. Options that name files to write or programs are refused, too. Types are checked later.
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
            given = read_options(str(text))
            _check_names("parses", given)
            if given.get("--parser", "").startswith("command"):
                raise DataError(
                    "a file may not name a command; set the variable "
                    f"PARSER_{str(language).upper()} to it"
                )


def _check_command(words: Sequence[str], programs: Collection[str]) -> None:
    program = words[0]
    if program == _TOKENISE:
        _check_names("words", read_options(shlex.join(words)))
    elif program not in (*_HARMLESS, *programs):
        raise DataError(
            f"a program is started only if the command line names it: --programs {program}"
        )


def _check_names(name: str, names: Iterable[str]) -> None:
    for option in names:
        if option not in _OPTIONS[name]:
            known = ", ".join(_OPTIONS[name])
            raise DataError(f"{option}: here, only {known} are possible")
