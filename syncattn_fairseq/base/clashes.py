"""Check that no file is both read and written by a command, or written twice."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .errors import DataError


def check_files(
    inputs: Iterable[str | Path] = (),
    files: Iterable[str | Path] = (),
    outputs: Iterable[str | Path] = (),
) -> None:
    """Check that no output file of a command is also an input, or is given twice.

    A command calls this before it reads or writes a file. Links and different spellings of a path
    are the same file.

    Args:
        inputs: files that are read once, from the beginning to the end; they may be pipes.
        files: files that are read in any order or by other programs; they may not be pipes.
        outputs: files to write; ``-`` and devices are not checked.

    Raises:
        DataError: one of ``files`` is a pipe or a device; or an output is also read, is given
            twice, or has the suffix of a compressed file.
    """
    files = list(files)
    for path in files:
        if _mode(path) and not (stat.S_ISREG(_mode(path)) or stat.S_ISDIR(_mode(path))):
            raise DataError(
                f"{path}: not a regular file (a pipe or a device), which this option needs; save "
                "the content to a file first"
            )
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
                f"{os.path.realpath(path)}: two outputs of this command have this name; give "
                "each output a different name"
            )
        if str(path).endswith((".gz", ".bz2")):
            raise DataError(
                f"{path}: this command does not compress its output; leave out the ending "
                f"{Path(path).suffix}"
            )
        written.add(identity)


def _mode(path: str | Path) -> int:
    """Return the mode of a file (``st_mode``); 0 if the file does not exist."""
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _identify(path: str | Path) -> Any:
    """Return an identifier common to all paths of a file; None for ``-`` and for devices."""
    try:
        found = os.stat(path)
    except OSError:
        return None if str(path) == "-" else os.path.realpath(path)
    kinds = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISFIFO)
    return (found.st_dev, found.st_ino) if any(kind(found.st_mode) for kind in kinds) else None
