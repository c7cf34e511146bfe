"""Text files read line by line as fairseq reads them, and files written whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import TextIO

from .errors import DataError, naming_full_disk
from .inputs import name_input, open_text

MAX_LINE = 2**24
"""In characters, including the line end. No sentence, parse or tree is longer: a file with such
a line is not text, and would fill the memory."""


def read_lines(path: Path | str | int) -> Iterator[str]:
    """Yield the lines of a UTF-8 text, which may be compressed, without line ends.

    Args:
        path: the file, or an open file descriptor.

    Raises:
        DataError: a line is not UTF-8, or longer than `MAX_LINE`; the error names it. Or a
            compressed file is damaged.
    """
    with open_text(path, errors="surrogateescape") as file:
        yield from _lines(file, name_input(path))


def _lines(file: TextIO, name: str) -> Iterator[str]:
    # Undecodable bytes come through as lone surrogates, which valid text never holds: this tells
    # us which line has them, although the decoder works in blocks.
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise DataError(
                f"{name}:{number}: a line of more than {MAX_LINE:,} characters; is the file text?"
            )
        try:
            line.encode()
        except UnicodeEncodeError:
            raise DataError(f"{name}:{number}: not UTF-8; convert the file to UTF-8") from None
        yield line.rstrip("\n")


def count_lines(*paths: Path) -> int:
    """Return the number of lines of files that go together line by line.

    Raises:
        DataError: a file is empty, or has a different number of lines from the first one.
    """
    counts = [_count_lines_of(path) for path in paths]
    for path, count in zip(paths, counts, strict=True):
        if count == 0:
            raise DataError(f"{path}: the file is empty")
        if count != counts[0]:
            last = min(count, counts[0])
            raise DataError(
                f"{path}:{last}: {count} lines here but {counts[0]} in {paths[0]}; "
                "both need one line per sentence, empty lines included"
            )
    return counts[0]


def _count_lines_of(path: Path) -> int:
    """Return how many lines `read_lines` yields, in half the time."""
    count, end = 0, "\n"
    try:
        with open_text(path) as file:
            while text := file.read(2**20):
                count += text.count("\n")
                end = text[-1]
    except UnicodeDecodeError:
        return sum(1 for _ in read_lines(path))  # it names the line
    return count + (end != "\n")


def hash_file(path: Path, algorithm: str = "sha256") -> str:
    """Return the SHA-256 of a file, or its sum by another algorithm of hashlib."""
    digest = hashlib.new(algorithm)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file next to ``path``, renamed to ``path`` when the block succeeds.

    A link is followed: the file that it points to is replaced. Anything else, such as ``/dev/null``
    or a pipe, is yielded itself. Leftovers of killed runs are removed.

    Raises:
        DataError: the folder does not exist.
        OSError: the disk is full; the error names ``path``.
    """
    with naming_full_disk(path):
        if _is_stream(path):
            yield path
            return
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not target.parent.is_dir():
            raise DataError(f"{target.parent}: no such folder; make it first")
        _remove_leftovers(target)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        # Never open a file or a link that already exists.
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)  # held while we write
            yield temporary
            if target.exists():
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
            os.close(descriptor)


def _is_stream(path: Path) -> bool:
    """Return whether the path is a device or a pipe, which must not be replaced."""
    if Path("/dev") in path.parents:
        return True  # also /dev/stdout, which may point to a file
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of ``target`` whose writers were killed."""
    for path in target.parent.glob(f".{escape(target.name)}.{'[0-9a-f]' * 8}.tmp"):
        with suppress(OSError):  # locked, gone, or on a file system without locks
            descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)
