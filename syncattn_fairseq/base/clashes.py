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
    """Check the files of a command before it reads or writes any.

    Links and different spellings of a path are the same file. Inputs are read from their beginning
    and may be pipes, files in any order or by others; ``-`` and devices are no outputs.

    Raises:
        DataError: one of the files is a pipe, or an output is also read or is written twice.
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
    """Return the mode of a file; 0 if there is none."""
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _identify(path: str | Path) -> Any:
    """Return an equal key for all paths of a file (device and inode); None for devices."""
    try:
        found = os.stat(path)
    except OSError:
        return None if str(path) == "-" else os.path.realpath(path)
    kinds = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISFIFO)
    return (found.st_dev, found.st_ino) if any(kind(found.st_mode) for kind in kinds) else None
