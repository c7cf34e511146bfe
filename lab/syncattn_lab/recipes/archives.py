"""Read single members of archives without unpacking whole archives."""

import bz2
import errno
import gzip
import posixpath
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any, BinaryIO

from syncattn_fairseq.base.errors import DataError, naming_full_disk, printable
from syncattn_fairseq.base.files import open_file

#: Separates an archive from its member in an address.
SEPARATOR = "!"

#: Suffixes of tar archives, each with the suffix of its compression.
TARS = {".tar": "", ".tar.gz": ".gz", ".tgz": ".gz", ".tar.bz2": ".bz2"}
ARCHIVES = (*TARS, ".zip")
_COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}

#: At most RATIO times an archive's size is unpacked, but always up to LEAST bytes.
LEAST = 1 << 27
RATIO = 100

#: Bytes that are read at a time; a longer name or header of a member is refused.
_BLOCK = 1 << 16
#: Compression methods of zip that are unpacked in small steps, whatever the content.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: The most members whose names are compared with a missing name, and the most characters of each.
_NAMES, _LENGTH = 1000, 200

#: Exceptions that the libraries raise for a damaged archive.
_DAMAGE = (
    *(EOFError, OSError, RuntimeError, ValueError, OverflowError, LookupError, struct.error),
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error),
)
#: An OSError that the libraries raise for damage has no number, or the number of a position before
#: the start of a file. Other numbers are the system's: a full disk, a missing permission.
_DAMAGE_NUMBERS = (None, errno.EINVAL)


@contextmanager
def open_member(directory: Path, address: str) -> Iterator[BinaryIO]:
    """Open a file, or a member of an archive, to read its decompressed bytes.

    The content is unpacked into a temporary file first, so that nothing is read from a damaged
    archive, nor from one that unpacks to far more than any text does.

    Args:
        directory: folder of the archive or file.
        address: ``FILE``, or ``ARCHIVE!MEMBER``; an archive that was unpacked is a folder. Leading
            folders of MEMBER may be missing in it, but not all of them. A FILE that ends in .gz or
            .bz2 is decompressed.

    Raises:
        DataError: there is no such file, or the archive is damaged.
        OSError: the archive cannot be opened, or the disk with temporary files is full.
    """
    name, _, member = address.partition(SEPARATOR)
    path = directory / name
    if not path.exists():
        raise DataError(f"{path}: no such file; fetch the file first, or put the file there")
    if member and path.is_dir():
        files = (path / name for name in _list_names(member))
        file = next((file for file in files if file.is_file()), None)
        if file is None:
            raise DataError(
                f"{path}: this folder has no {member}; name the folder that contains the file"
            )
        path, member = file, ""
    elif name.endswith(ARCHIVES) != bool(member):
        raise DataError(
            f"{path}: not the name of an archive ({', '.join(ARCHIVES)})"
            if member
            else f"{path}: is an archive; name a member: {path}{SEPARATOR}MEMBER"
        )
    with naming_full_disk(Path(gettempdir())), TemporaryFile() as content:
        try:
            with ExitStack() as stack:
                source = _Limited(_open(stack, path, member), path)
                while block := source.read(_BLOCK):
                    content.write(block)
        except _DAMAGE as error:
            own = isinstance(error, OSError) and error.errno not in _DAMAGE_NUMBERS
            if own or isinstance(error, DataError):
                raise
            raise DataError(
                f"{path}: the file is truncated or damaged ({_show(str(error) or repr(error))}); "
                "remove the file and fetch it again"
            ) from error
        content.seek(0)
        yield content


class _Limited:
    """A stream of unpacked bytes; too many bytes raise `DataError`."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._path = file, path
        self._most = max(LEAST, RATIO * path.stat().st_size)
        self._position = 0

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _BLOCK:
            raise tarfile.ReadError(f"a header of {size} bytes")
        block = self._file.read(size)
        self._reach(self._position + len(block))
        return block

    def seek(self, position: int) -> None:
        self._reach(position)
        self._file.seek(position)

    def tell(self) -> int:
        return self._position

    def _reach(self, position: int) -> None:
        if position > self._most:
            raise DataError(
                f"{self._path}: unpacks to more than {self._most} bytes, over {RATIO} times its "
                "size; the archive is damaged or malicious: remove it and fetch it again"
            )
        self._position = position


class _Member(tarfile.TarInfo):
    """A member of a tar that refuses sparse files, whose maps may take for ever to read."""

    def _proc_gnusparse_10(self, *_: Any) -> None:
        raise tarfile.ReadError("a sparse file")


def _open(stack: ExitStack, path: Path, member: str) -> Any:
    if path.name.endswith(".zip") and member:
        archive: Any = stack.enter_context(zipfile.ZipFile(open_file(path)))
        info = _find(_zip_entries(archive), path, member)
        if info.compress_type not in _METHODS:
            raise zipfile.BadZipFile(
                f"{_show(info.filename)} is compressed by an unsupported method, neither stored "
                "nor deflated"
            )
        return stack.enter_context(archive.open(info))
    kind = next((kind for suffix, kind in TARS.items() if path.name.endswith(suffix)), path.suffix)
    file = stack.enter_context(_COMPRESSED.get(kind, open)(path, "rb"))
    if not member:
        return file
    limited: Any = _Limited(file, path)
    archive = stack.enter_context(tarfile.TarFile(fileobj=limited, tarinfo=_Member))
    return stack.enter_context(archive.extractfile(_find(_tar_entries(archive), path, member)))


def _tar_entries(archive: Any) -> Iterator[tuple[str, Any, bool]]:
    while (info := archive.next()) is not None:
        archive.members.clear()  # else they would fill the memory
        yield info.name, info, info.isreg()


def _zip_entries(archive: zipfile.ZipFile) -> Iterator[tuple[str, Any, bool]]:
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        yield info.filename, info, not info.is_dir() and kind in (0, stat.S_IFREG)


def _find(entries: Iterator[tuple[str, Any, bool]], archive: Path, member: str) -> Any:
    """Return the entry of a member in an archive: a ``ZipInfo`` or a ``TarInfo``."""
    names: list[str] = []
    wanted = _list_names(member)
    for full_name, info, is_file in entries:
        name = posixpath.normpath(full_name)
        if name in wanted:
            if not is_file:
                raise DataError(f"{archive}: {member} is a folder, a link or the like; name a file")
            return info
        if len(names) < _NAMES:
            names.append(name[:_LENGTH])
    near = ", ".join(map(_show, get_close_matches(member, names, cutoff=0))) or "nothing"
    raise DataError(f"{archive}: has no {member}; most similar: {near}")


def _list_names(member: str) -> list[str]:
    """List the accepted names of a member: the path without the first 0, 1, 2 or more folders."""
    parts = posixpath.normpath(member).split("/")
    if ".." in parts:
        return []
    return ["/".join(parts[first:]) for first in range(max(1, len(parts) - 1))]


def _show(text: str) -> str:
    return printable(text[:_LENGTH])
