"""The dictionary of dependency labels: a fairseq dictionary next to the binarised text."""

from __future__ import annotations

from collections import Counter
from io import StringIO
from pathlib import Path

from fairseq.data import Dictionary

from ..base.errors import DataError
from ..base.files import replacing
from ..base.text import read_lines


def locate_dictionary(folder: Path | str, language: str) -> Path:
    """Return the path of a language's label dictionary in the folder of a binarised corpus."""
    return Path(folder) / f"dict.labels.{language}.txt"


def build_dictionary(tally: Counter[str]) -> Dictionary:
    """Make a dictionary of counted labels, the most frequent first."""
    dictionary = Dictionary()
    for label, count in tally.items():
        dictionary.add_symbol(label, count)
    dictionary.finalize(padding_factor=1)
    return dictionary


def load_dictionary(path: Path) -> Dictionary:
    """Read a dictionary.

    Raises:
        DataError: the file is not a fairseq dictionary.
    """
    dictionary = Dictionary()
    text = StringIO("\n".join(read_lines(path)))
    try:
        dictionary.add_from_file(text)
    except (ValueError, RuntimeError) as error:
        raise DataError(f"{path}: {' '.join(str(error).split())[:200]}") from None
    return dictionary


def save_dictionary(dictionary: Dictionary, path: Path) -> None:
    """Write a dictionary; it appears whole or not at all."""
    with replacing(path) as temporary:
        dictionary.save(str(temporary))
