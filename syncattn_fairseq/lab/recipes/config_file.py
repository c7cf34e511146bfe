"""Read YAML settings from untrusted files; the file's size bounds time and memory."""

from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError
from yaml.error import MarkedYAMLError
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

from ...base.errors import DataError
from ...base.files import read_text_file

#: The most characters of a file, levels of its lists, and digits of its whole numbers.
LARGEST = 100_000
DEEPEST = 20
_DIGITS = 18


def read_config(path: Path) -> Any:
    """Read a file of settings, with numbers as hydra reads them; do not change what is returned.

    Raises:
        DataError: the file is missing, or is not YAML with names and values; or it is larger or
            deeper than any settings, or has an alias, which would stand for any number of values.
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
    """Return the value in ``SECTION.OPTION=VALUE``, as a list or dict if it is one.

    Raises:
        DataError: it is not a value.
    """
    name, _, value = text.partition("=")
    _check_values(value, name)  # OmegaConf would replace ${...}
    try:
        _check_text(value, text[:200])
        setting = OmegaConf.select(OmegaConf.from_dotlist([text]), name)
    except (YAMLError, OmegaConfBaseException, ValueError) as error:
        raise DataError(f"{text[:200]}: not a value: {first_line(error)}") from None
    setting = OmegaConf.to_container(setting) if OmegaConf.is_config(setting) else setting
    _check_values(setting, text[:200])
    return setting


def first_line(error: Exception) -> str:
    """Return the first line of an error, its type if it has none."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _check_text(text: str, location: object) -> None:
    if len(text) > LARGEST:
        raise DataError(f"{location}: more than {LARGEST:,} characters, which is too much")
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        at = f"{location}:{event.start_mark.line + 1}"
        if isinstance(event, AliasEvent):
            raise DataError(f"{at}: *{event.anchor} is an alias; write its value again")
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEEPEST:
            raise DataError(f"{at}: lists of more than {DEEPEST} levels")


def _check_values(value: Any, location: object) -> None:
    """Check that programs can be called with all names and values."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise DataError(f"{location}: {name!r} is no name; quote it: {str(name)!r}")
            _check_values(name, location)
            _check_values(inner, location)
    elif isinstance(value, list):
        for inner in value:
            _check_values(inner, location)
    elif isinstance(value, str):
        if "${" in value:
            raise DataError(f"{location}: {value[:60]}: write the value in place of ${{...}}")
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise DataError(f"{location}: {value[:60]!r} has characters that are not text")
    elif isinstance(value, bytes):
        raise DataError(f"{location}: {value[:60]!r} is not text; give text")
    elif isinstance(value, int) and abs(value) >= 10**_DIGITS:
        raise DataError(f"{location}: a number of more than {_DIGITS} digits")
