"""Open text: compressed or not, with or without a byte order mark, from a file or from a pipe."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any, TextIO

from .errors import DataError, naming_full_disk

#: How compressed files begin, and what reads them.
_COMPRESSED: dict[re.Pattern[bytes], Any] = {
    re.compile(rb"\x1f\x8b"): gzip.open,
    re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"): bz2.open,
}
_SUFFIXES = (".gz", ".bz2")


@contextmanager
def open_text(path: Path | str | int, errors: str = "strict") -> Iterator[TextIO]:
    """Open a UTF-8 text, without its byte order mark; decompress gzip and bzip2.

    Args:
        path: the file, or an open file descriptor.
        errors: what to do with bytes that are not UTF-8, see `codecs`.

    Raises:
        DataError: a compressed file is damaged.
    """
    with _open(path) as file:
        opener = _find_opener(file.peek(16))
        content = opener(file) if opener else file
        with io.TextIOWrapper(content, encoding="utf-8-sig", errors=errors) as text:
            try:
                yield text
            except (EOFError, OSError, zlib.error) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise  # of the system
                raise DataError(
                    f"{name_input(path)}: not a complete compressed file ({error}); get it again"
                ) from None


def name_input(path: Path | str | int) -> str:
    """Return what errors call a file or an open file descriptor."""
    return "<stdin>" if path == 0 else str(path)


def find_text(path: Path) -> Path:
    """Return the path, or that of the compressed file beside it if only this one exists."""
    if not path.exists():
        for suffix in _SUFFIXES:
            compressed = path.with_name(path.name + suffix)
            if compressed.exists():
                return compressed
    return path


def is_plain(path: Path) -> bool:
    """Return whether a text is a file that others can read in any order, without `open_text`.

    Raises:
        OSError: there is no such file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        return False
    with path.open("rb") as file:
        head = file.read(16)
    return not head.startswith(codecs.BOM_UTF8) and _find_opener(head) is None


def _find_opener(head: bytes) -> Any | None:
    return next((opener for begins, opener in _COMPRESSED.items() if begins.match(head)), None)


# ---- pipes


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


def _open(path: Path | str | int) -> io.BufferedReader:
    if isinstance(path, int):
        return open(path, "rb", closefd=path != 0)
    found = os.stat(path)
    if _pipes is None or stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
        return open(path, "rb")
    key = found.st_dev, found.st_ino
    if key not in _pipes:
        _pipes[key] = _Pipe(path)
    return io.BufferedReader(_Reader(_pipes[key]))
