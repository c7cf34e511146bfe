"""Open files and pipes; a command can read a pipe more than once."""

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any

from .errors import naming_full_disk


def name_input(path: Path | str | int) -> str:
    """Return what errors call a file or an open file descriptor."""
    return "<stdin>" if path == 0 else str(path)


class _Pipe:
    """A pipe, and what was read from it so far."""

    def __init__(self, path: Path | str) -> None:
        self._source = open(path, "rb", buffering=0)  # noqa: SIM115
        self._read = TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._size = 0

    def read(self, position: int, size: int) -> bytes:
        """Return some of the bytes from a position on; none at the end."""
        if position < self._size:
            self._read.seek(position)
            return self._read.read(size)
        block: bytes = self._source.read(size) or b""
        with naming_full_disk(Path(gettempdir())):
            self._read.seek(self._size)
            self._read.write(block)
            self._read.flush()
        self._size += len(block)
        return block

    def close(self) -> None:
        """Close the pipe, and forget what was read."""
        self._source.close()
        self._read.close()


class _Reader(io.RawIOBase):
    """Reads a pipe from its beginning, whoever has read from it before."""

    def __init__(self, pipe: _Pipe) -> None:
        self._pipe, self._position = pipe, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes; return how many, 0 at the end."""
        block = self._pipe.read(self._position, len(buffer))
        buffer[: len(block)] = block
        self._position += len(block)
        return len(block)


_pipes: dict[tuple[int, int], _Pipe] | None = None


@contextmanager
def keeping_pipes() -> Iterator[None]:
    """Within the block, `open_text` can open a pipe several times: what was read is kept.

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
        for pipe in _pipes.values():
            pipe.close()
        _pipes = None


def open_input(path: Path | str | int) -> io.BufferedReader:
    """Open a file, a pipe or a file descriptor for reading its bytes."""
    if isinstance(path, int):
        return open(path, "rb", closefd=path != 0)
    status = os.stat(path)
    if _pipes is None or stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return open(path, "rb")
    key = status.st_dev, status.st_ino
    if key not in _pipes:
        _pipes[key] = _Pipe(path)
    return io.BufferedReader(_Reader(_pipes[key]))
