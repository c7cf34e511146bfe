"""Files written whole or not at all, and files from others, read within limits."""

import errno
import hashlib
import io
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any

from .errors import DataError, naming_full_disk
from .systems import NO_LINKS, NO_WAITING, lock_file

MAX_SIZE = 2**28
"""Default limit of a file's size, in bytes; settings, dictionaries, subword models are smaller."""


def open_file(path: Path | str) -> io.BufferedReader:
    """Open a regular file for reading bytes; raise `DataError` for any other kind of file.

    Never waits: a named pipe, a device or a link to one is refused.
    """
    # Non-blocking, since it could have become a pipe after a check of its name.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | NO_WAITING))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise DataError(f"{path}: not a regular file")
    return file


def read_file(path: Path | str, largest: int = MAX_SIZE) -> bytes:
    """Return the bytes of a regular file; raise `DataError` if there are more than ``largest``."""
    with open_file(path) as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise DataError(
            f"{path}: has more than {largest:,} bytes, too many for this kind of file; check the "
            "path"
        )
    return content


def read_text_file(path: Path | str, largest: int = MAX_SIZE) -> str:
    """Return the text of a regular UTF-8 file; raise `DataError` if the file is not UTF-8."""
    try:
        return read_file(path, largest).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(
            f"{path}: not UTF-8; convert the file to UTF-8, or get a new copy"
        ) from None


def read_json(path: Path | str, largest: int = MAX_SIZE) -> Any:
    """Return the value in a JSON file; raise `DataError` if it is not JSON or nested too deeply."""
    try:
        return json.loads(read_text_file(path, largest))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: not valid JSON ({error}); get a new copy of the file") from None


def hash_file(path: Path, algorithm: str = "sha256") -> str:
    """Return the hexadecimal SHA-256 of a file, or its hash by another algorithm of hashlib."""
    digest = hashlib.new(algorithm)
    with open_file(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def replacing(path: Path, follow: bool = True) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces ``path`` when the block succeeds.

    A link is followed: the file that it points to is replaced. Anything else, such as ``/dev/null``
    or a pipe, is yielded itself. Leftovers of killed runs are removed. What was written is on the
    disk before the file has its name.

    Args:
        path: the path of the file to write.
        follow: False: a link to a file is itself replaced, as nobody has named it as an output.

    Raises:
        DataError: the folder does not exist, or another process is writing the file.
        OSError: the system cannot write; the error names ``path``, not the temporary file.
    """
    with naming_full_disk(path):
        if _is_stream(path):
            yield path
            return
        target = Path(os.path.realpath(path))
        if not follow:
            target = Path(os.path.realpath(path.parent), path.name)
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
                lock_file(descriptor, wait=True)  # held while we write
            yield temporary
            if target.exists():
                shutil.copymode(target, temporary)
            flush(temporary)
            os.replace(temporary, target)
        except OSError as error:
            if error.filename == str(temporary):
                error.filename = str(path)
            raise
        finally:
            temporary.unlink(missing_ok=True)
            os.close(descriptor)


def _is_stream(path: Path) -> bool:
    """Return whether the path is a device or a pipe and must not be replaced."""
    if Path("/dev") in path.parents:
        return True  # also /dev/stdout, which may point to a file
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def flush(path: Path) -> None:
    """Wait until the contents of a file or folder are on the disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of killed writers; raise `DataError` if a writer is alive."""
    for path in target.parent.glob(f".{escape(target.name)}.{'[0-9a-f]' * 8}.tmp"):
        with suppress(OSError):  # gone, or on a file system without locks
            descriptor = os.open(path, os.O_WRONLY | NO_LINKS)
            try:
                lock_file(descriptor)
                path.unlink()
            except BlockingIOError:
                raise DataError(
                    f"{target}: another process is writing this file; wait for that process, or "
                    "choose another output"
                ) from None
            finally:
                os.close(descriptor)
