"""Members of archives, read without unpacking them."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import posixpath
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, NamedTuple

from ..base.errors import DataError

#: Between an archive and its member in the name of a place.
SEPARATOR = "!"

_BLOCK = 1 << 18


@contextmanager
def open_member(directory: Path, place: str) -> Iterator[BinaryIO]:
    """Open a file that may be in an archive, or in an archive in it.

    Args:
        directory: where the outermost file is.
        place: ``FILE``, or ``ARCHIVE!MEMBER``, or ``ARCHIVE!ARCHIVE IN IT!MEMBER``, and so on.
            Archives end in .tar, .tar.gz, .tgz, .tar.bz2 or .zip. A file that ends in .gz or .bz2
            is decompressed.

    Yields:
        its bytes.

    Raises:
        DataError: there is no such file, or the archive is damaged; reading raises it, too.
    """
    file, *members = place.split(SEPARATOR)
    name = str(directory / file)
    with ExitStack() as stack:
        try:
            stream: BinaryIO = stack.enter_context(open(name, "rb"))
        except FileNotFoundError:
            raise DataError(f"{name}: is missing; fetch it first, or put it there") from None
        for member in members:
            stream = stack.enter_context(_open_in(stream, name, member))
            name += SEPARATOR + member
        if _archive_suffix(name):
            raise DataError(f"{name}: is an archive; name a member: {name}{SEPARATOR}MEMBER")
        decompress = _DECOMPRESSORS.get(posixpath.splitext(name)[1])
        if decompress:
            stream = _named(stack.enter_context(decompress(stream)), name)
        yield stream


class _Entry(NamedTuple):
    """A member of an archive.

    Attributes:
        name: as it is there.
        link: where it points to, from the top of the archive; None: it is not a link.
        is_file: whether it has content.
        open: gives it.
    """

    name: str
    link: str | None
    is_file: bool
    open: Callable[[], Any]


@contextmanager
def _open_in(stream: IO[bytes], archive: str, member: str) -> Iterator[BinaryIO]:
    suffix = _archive_suffix(archive)
    if suffix is None:
        raise DataError(f"{archive}: is no archive (one of {', '.join(_ARCHIVES)}), by its name")
    with ExitStack() as stack:
        with _readable(archive):
            entries = stack.enter_context(_ARCHIVES[suffix](stream, archive))
            content = stack.enter_context(_find(entries, archive, member).open())
        yield _named(content, archive)


def _find(entries: Iterable[_Entry], archive: str, member: str) -> _Entry:
    """Return the member of that name."""
    names = []
    for entry in entries:
        name = posixpath.normpath(entry.name)
        if name == posixpath.normpath(member):
            if not entry.is_file:
                what = "a folder" if entry.link is None else f"a link to {entry.link}"
                raise DataError(f"{archive}: {member} is {what}; name a file")
            return entry
        names.append(name)
    near = ", ".join(get_close_matches(member, names, cutoff=0)) or "nothing"
    raise DataError(f"{archive}: holds no {member}; nearest to it: {near}")


def _inside(entry: _Entry, archive: str) -> _Entry:
    """Refuse an archive that has such a member, though it is not unpacked."""
    outside = entry.name.startswith("/") or ".." in entry.name.split("/")
    if entry.link is not None:
        target = posixpath.normpath(entry.link)
        outside |= target.startswith("/") or target.split("/")[0] == ".."
    if outside:
        raise DataError(
            f"{archive}: holds a member that would be unpacked outside of its folder "
            f"({entry.name}); the archive is damaged or malicious: remove it and fetch it again"
        )
    return entry


# ---- kinds of archives


@contextmanager
def _tar(
    stream: IO[bytes], archive: str, decompress: Callable[[IO[bytes]], Any] | None = None
) -> Iterator[Iterator[_Entry]]:
    """Open a tar as a stream: its members are read in their order."""
    with ExitStack() as stack:
        if decompress:
            # What tarfile decompresses itself has no checksum and ends at the first of several
            # concatenated streams.
            stream = stack.enter_context(decompress(stream))
        tar = stack.enter_context(tarfile.open(fileobj=stream, mode="r|", bufsize=_BLOCK))
        yield (_inside(_tar_entry(tar, info), archive) for info in tar)


def _tar_entry(tar: tarfile.TarFile, info: tarfile.TarInfo) -> _Entry:
    link = None
    if info.islnk():
        link = info.linkname
    elif info.issym():
        link = posixpath.join(posixpath.dirname(info.name), info.linkname)
    return _Entry(info.name, link, info.isreg(), partial(tar.extractfile, info))


@contextmanager
def _zip(stream: IO[bytes], archive: str) -> Iterator[list[_Entry]]:
    with ExitStack() as stack:
        if not stream.seekable():  # it is in an archive, and its table of contents is at its end
            spool = stack.enter_context(TemporaryFile())
            shutil.copyfileobj(stream, spool, _BLOCK)
            stream = spool
        file = stack.enter_context(zipfile.ZipFile(stream))
        yield [_inside(_zip_entry(file, info), archive) for info in file.infolist()]


def _zip_entry(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Entry:
    link = None
    if stat.S_ISLNK(info.external_attr >> 16):
        link = posixpath.join(posixpath.dirname(info.filename), os.fsdecode(file.read(info)))
    is_file = link is None and not info.filename.endswith("/")
    return _Entry(info.filename, link, is_file, partial(file.open, info))


_DECOMPRESSORS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda stream: gzip.GzipFile(fileobj=stream),
    ".bz2": bz2.BZ2File,
}
_ARCHIVES: dict[str, Callable[[IO[bytes], str], AbstractContextManager[Iterable[_Entry]]]] = {
    ".tar": _tar,
    ".tar.gz": partial(_tar, decompress=_DECOMPRESSORS[".gz"]),
    ".tgz": partial(_tar, decompress=_DECOMPRESSORS[".gz"]),
    ".tar.bz2": partial(_tar, decompress=_DECOMPRESSORS[".bz2"]),
    ".zip": _zip,
}


def _archive_suffix(name: str) -> str | None:
    return next((suffix for suffix in _ARCHIVES if name.endswith(suffix)), None)


# ---- damage


class _Named(io.RawIOBase):
    """A stream that says which archive is damaged when it cannot be read.

    Args:
        content: what is read.
        archive: what it is in.
    """

    def __init__(self, content: IO[bytes], archive: str) -> None:
        self._content = content
        self._archive = archive

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read some bytes."""
        with _readable(self._archive):
            block = self._content.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)


def _named(content: IO[bytes], archive: str) -> BinaryIO:
    return io.BufferedReader(_Named(content, archive), _BLOCK)


@contextmanager
def _readable(archive: str) -> Iterator[None]:
    """Name the archive in whatever its reader finds wrong."""
    try:
        yield
    except (EOFError, OSError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as e:
        raise DataError(
            f"{archive}: is truncated or damaged ({e}); remove it and fetch it again"
        ) from e
