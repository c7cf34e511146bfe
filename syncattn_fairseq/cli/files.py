"""The files that a command reads and writes, checked before it does either.

A parser is told which of its arguments are files (`Parser.name_files`); it checks them when it has
read them (`check_files`).
"""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

from ..base.errors import DataError

Names: TypeAlias = "str | Callable[[argparse.Namespace], Iterable[str | Path]]"
"""Where paths come from: an argument with them, or a function of all arguments."""

#: What stands beside the files in arguments of several parts.
_NOT_FILES = ("NAME", "ALIGNMENT")


class Parser(argparse.ArgumentParser):
    """Reads arguments, and checks the files that they name."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._files: dict[str, list[Names]] = {"inputs": [], "files": [], "outputs": []}

    def name_files(
        self,
        inputs: Iterable[Names] = (),
        files: Iterable[Names] = (),
        outputs: Iterable[Names] = (),
    ) -> None:
        """Say which arguments are files; see `check_files`."""
        for kind, names in (("inputs", inputs), ("files", files), ("outputs", outputs)):
            self._files[kind] += names

    def parse_known_args(self, *args: Any, **options: Any) -> Any:
        """Read the arguments.

        Raises:
            DataError: a file that they name cannot be read or written.
        """
        found = super().parse_known_args(*args, **options)
        paths = {
            kind: [path for each in names for path in self._list_paths(each, found[0])]
            for kind, names in self._files.items()
        }
        check_files(**paths)
        return found

    def _list_paths(self, names: Names, args: argparse.Namespace) -> Iterator[str | Path]:
        if callable(names):
            yield from names(args)
            return
        [action] = (action for action in self._actions if action.dest == names)
        yield from _list_files(getattr(args, names, None), action.metavar)


def _list_files(value: Any, metavar: Any) -> Iterator[str | Path]:
    """Yield the paths in the value of an argument, a list if there are several."""
    if isinstance(value, str | Path):
        yield value
    elif value and isinstance(value[0], list):  # the argument may be repeated
        for each in value:
            yield from _list_files(each, metavar)
    elif value:
        parts = metavar if isinstance(metavar, tuple) else (metavar,)
        for path, part in zip_longest(value, parts[: len(value)], fillvalue=parts[-1]):
            if part not in _NOT_FILES:
                yield path


def check_files(
    inputs: Iterable[str | Path] = (),
    files: Iterable[str | Path] = (),
    outputs: Iterable[str | Path] = (),
) -> None:
    """Check that the files of a command do not get in each other's way.

    Links and different spellings of a path are the same file.

    Args:
        inputs: are read from their beginning; may be pipes.
        files: are read in any order or by others.
        outputs: are written; ``-`` and devices are not files.

    Raises:
        DataError: one of the files is a pipe, or an output is also read or is written twice.
    """
    files = list(files)
    for path in files:
        if _mode(path) and not (stat.S_ISREG(_mode(path)) or stat.S_ISDIR(_mode(path))):
            raise DataError(f"{path}: not a regular file; save what it holds to one first")
    read = {_identify(path): path for path in (*inputs, *files)}
    written = set()
    for path in outputs:
        identity = _identify(path)
        if identity is None:
            continue
        if identity in read:
            raise DataError(
                f"{path}: this output is also an input ({read[identity]}); choose another name"
            )
        if identity in written:
            raise DataError(
                f"{os.path.realpath(path)}: two outputs have this name; give each a name of its own"
            )
        if str(path).endswith((".gz", ".bz2")):
            raise DataError(f"{path}: would not be compressed; leave out {Path(path).suffix}")
        written.add(identity)


def _mode(path: str | Path) -> int:
    """Return the mode of a file; 0 if there is none."""
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _identify(path: str | Path) -> Any:
    """Return what is the same for all names of a file; None if it is not a file."""
    try:
        found = os.stat(path)
    except OSError:
        return None if str(path) == "-" else os.path.realpath(path)
    kinds = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISFIFO)
    return (found.st_dev, found.st_ino) if any(kind(found.st_mode) for kind in kinds) else None
