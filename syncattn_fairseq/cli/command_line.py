"""Check the input and output files of a command before any file is read or written.

A command line is told which of its arguments are files (`CommandLine.name_files`); it checks them
when it has read them (`check_files`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from ..base.clashes import check_files
from ..base.errors import printable
from ..base.locks import claiming

Names: TypeAlias = "str | Callable[[argparse.Namespace], Iterable[str | Path]]"
"""Where a command finds paths: the name of an argument, or a function of all arguments."""

#: The parts that are not files, by their metavars, in arguments of several parts.
_NOT_FILES = ("NAME", "ALIGNMENT", "MEASURE")


class _Claims(ExitStack):
    """The locks of a running command's output files, one for each file."""

    def __init__(self) -> None:
        super().__init__()
        self._paths: set[Path] = set()

    def add(self, path: Path) -> None:
        if path.resolve() not in self._paths:
            self.enter_context(claiming(path))
            self._paths.add(path.resolve())


_claims: _Claims | None = None


@contextmanager
def claiming_outputs(claims: bool = True) -> Iterator[None]:
    """Lock the output files of commands whose arguments are parsed within the block.

    Without ``claims``, nothing is locked, as the arguments are for a call that is made later.
    """
    global _claims
    with _Claims() as stack:
        before, _claims = _claims, stack if claims else None
        try:
            yield
        finally:
            _claims = before


class CommandLine(argparse.ArgumentParser):
    """An argument parser that checks and locks the files named by the arguments."""

    claims_outputs = True
    """Whether parsing locks the output files for this command; False: the code that writes does.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._files: dict[str, list[Names]] = {"inputs": [], "files": [], "outputs": []}
        #: Checks parsed arguments, and ends the program if some do not go together.
        self.check: Callable[[CommandLine, argparse.Namespace], None] = lambda parser, args: None

    def name_files(
        self,
        inputs: Iterable[Names] = (),
        files: Iterable[Names] = (),
        outputs: Iterable[Names] = (),
    ) -> None:
        """Register the arguments that name files, to be checked before the command reads or writes.

        Args:
            inputs: arguments with files that are read from the beginning, and may be pipes.
            files: arguments with files that are read in any order, and may not be pipes.
            outputs: arguments with files that are written.
        """
        for kind, names in (("inputs", inputs), ("files", files), ("outputs", outputs)):
            self._files[kind] += names

    def parse_known_args(self, *args: Any, **options: Any) -> Any:
        """Parse the arguments; raise `DataError` if a file cannot be read or written."""
        parsed = super().parse_known_args(*args, **options)
        self.check(self, parsed[0])
        paths = {
            kind: [path for each in names for path in self._list_paths(each, parsed[0])]
            for kind, names in self._files.items()
        }
        check_files(**paths)
        for path in map(Path, paths["outputs"] if _claims and self.claims_outputs else ()):
            # A device may have several writers, and what cannot be written is named by who writes.
            new = path.parent.is_dir() and not path.exists() and path.name != "-"
            if _claims and (new or path.is_file()):
                _claims.add(path)
        return parsed

    def error(self, message: str) -> NoReturn:
        """Print the error in a single line, without the long usage, and exit with status 2."""
        self.exit(2, f"error: {printable(message)}; see {self.prog} --help\n")

    def _list_paths(self, names: Names, args: argparse.Namespace) -> Iterator[str | Path]:
        if callable(names):
            yield from names(args)
            return
        [action] = (action for action in self._actions if action.dest == names)
        yield from _list_files(getattr(args, names, None), action.metavar)


def _list_files(value: Any, metavar: Any) -> Iterator[str | Path]:
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
