"""Open files and pipes; a command can read a pipe more than once."""

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any

from .errors import naming_full_disk


def name_input(path: Path | str | int) -> str:
    """Return the name of an input for error messages: the path, or ``<stdin>`` for descriptor 0."""
    return "<stdin>" if path == 0 else str(path)


class _Replay(io.RawIOBase):
    """Reader of a pipe from its beginning, even if parts of the pipe were read before."""

    def __init__(self, pipe: io.RawIOBase, copy: IO[bytes]) -> None:
        self._pipe, self._copy, self._position = pipe, copy, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._copy.seek(self._position)
        block = self._copy.read(len(buffer))
        if not block:
            block = self._pipe.read(len(buffer)) or b""
            with naming_full_disk(Path(gettempdir())):
                self._copy.write(block)
                self._copy.flush()
        buffer[: len(block)] = block
        self._position += len(block)
        return len(block)


#: Pipes by device and inode number, each with a file of what was read from the pipe.
_pipes: dict[tuple[int, int], tuple[io.RawIOBase, IO[bytes]]] | None = None


@contextmanager
def keeping_pipes() -> Iterator[None]:
    """Keep the bytes read from pipes by the block, to let `open_text` open a pipe repeatedly.

    A pipe gives its contents once. Many commands read their input twice: to count its lines, or to
    find out what it is.
    """
    global _pipes
    if _pipes is not None:
        yield
        return
    _pipes = {}
    try:
        yield
    finally:
        for pipe, copy in _pipes.values():
            pipe.close()
            copy.close()
        _pipes = None


def open_input(path: Path | str | int) -> io.BufferedReader:
    """Open a file, a pipe or a file descriptor for reading bytes."""
    if isinstance(path, int):
        return open(path, "rb", closefd=path != 0)
    status = os.stat(path)
    if _pipes is None or stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return open(path, "rb")
    key = status.st_dev, status.st_ino
    if key not in _pipes:
        _pipes[key] = open(path, "rb", buffering=0), TemporaryFile()  # noqa: SIM115 (closed above)
    return io.BufferedReader(_Replay(*_pipes[key]))
