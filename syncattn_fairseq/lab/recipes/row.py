"""A row of a table as it is written on the command line: a system, perhaps changed and named."""

import re
from collections.abc import Container
from dataclasses import dataclass

from ...base.errors import DataError
from .systems import GENERATION

_NAMED = re.compile(r"([^=:.]*)=([^=:]*)(:.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class Row:
    """A system with changes.

    Attributes:
        text: as written: ``SYSTEM:SECTION.OPTION=VALUE:...``, perhaps with ``NAME=`` before it.
        system: the name of the config.
        changes: each ``SECTION.OPTION=VALUE``.
        name: the row's own; empty: it is called as it is written.
    """

    text: str
    system: str
    changes: tuple[str, ...] = ()
    name: str = ""

    @property
    def label(self) -> str:
        """Its name in tables, logs and results."""
        return self.name or self.text

    def model_folder(self, base: str) -> str:
        """Return the name of the folder of its model; rows that differ only in decoding share it.

        Args:
            base: the name without changes.
        """
        return self.name if self.name and self._trained else _slug(base, *self._trained)

    @property
    def output_folder(self) -> str:
        """The folder of its translations in that of its model; empty: the same."""
        if self.name:
            return "" if self._trained else self.name
        return _slug(*filter(_is_decoding, self.changes))

    @property
    def _trained(self) -> list[str]:
        return [text for text in self.changes if not _is_decoding(text)]


def is_row(word: str) -> bool:
    """Tell whether a word is meant as a row, and not as a setting of all systems."""
    return "=" not in word.partition(":")[0] or _NAMED.fullmatch(word) is not None


def read_row(text: str, known: Container[str] = ()) -> Row:
    """Read a row.

    Args:
        text: such as ``rotary=transformer:model.positions=rotary``.
        known: names that rows cannot have, those of the corpus's configs.

    Raises:
        DataError: its name is taken, or has other characters than letters, digits, _, + and -.
    """
    match = _NAMED.fullmatch(text)
    if match is None:
        system, *changes = text.split(":")
        return Row(text, system, tuple(changes))
    name, system, changes_text = match.groups()
    if not _NAME.fullmatch(name):
        raise DataError(f"{text}: name a row with letters, digits, _, + and - only, a letter first")
    if name in known:
        raise DataError(f"{text}: {name} is a config of its own; choose another name")
    return Row(text, system, tuple(changes_text[1:].split(":")), name)


def _is_decoding(change: str) -> bool:
    return change.startswith(GENERATION)


def _slug(*texts: str) -> str:
    """Return the name of a folder, without colons: fairseq would read two paths."""
    return "-".join(filter(None, (re.sub(r"[^\w.+-]+", "_", text) for text in texts)))
