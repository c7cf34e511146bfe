"""Members of archives, read without unpacking them."""

from __future__ import annotations

import bz2
import errno
import gzip
import os
import posixpath
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any, BinaryIO, NamedTuple

from ..base.errors import DataError, naming_full_disk

#: Separates an archive from its member in the name of a place.
SEPARATOR = "!"

#: Kinds of tar, and tarfile's names for their compression.
TARS = {".tar": "", ".tar.gz": "gz", ".tgz": "gz", ".tar.bz2": "bz2"}
ARCHIVES = (*TARS, ".zip")
_COMPRESSED = {".gz": gzip.open, ".bz2": bz2.open}

_BLOCK = 1 << 18
#: What the libraries raise for a damaged archive.
_DAMAGE = (EOFError, OSError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, zlib.error)
#: An OSError of theirs has no number, or that of a place before the start of a file. Others are the
#: system's: a full disk, a missing permission.
_DAMAGE_NUMBERS = (None, errno.EINVAL)


@contextmanager
def open_member(directory: Path, place: str) -> Iterator[BinaryIO]:
    """Open a file that may be in an archive.

    It is unpacked into a temporary file first, so that nothing is read from a damaged archive.

    Args:
        directory: folder of the archive or file.
        place: ``FILE``, or ``ARCHIVE!MEMBER``. Archives end in .tar, .tar.gz, .tgz, .tar.bz2 or
            .zip. A FILE that ends in .gz or .bz2 is decompressed.

    Yields:
        its bytes.

    Raises:
        DataError: there is no such file, or the archive is damaged.
        OSError: the archive cannot be opened, or the disk with temporary files is full.
    """
    name, _, member = place.partition(SEPARATOR)
    path = directory / name
    if not path.exists():
        raise DataError(f"{path}: missing; fetch it first, or put it there")
    if name.endswith(ARCHIVES) != bool(member):
        raise DataError(
            f"{path}: not the name of an archive ({', '.join(ARCHIVES)})"
            if member
            else f"{path}: is an archive; name a member: {path}{SEPARATOR}MEMBER"
        )
    with naming_full_disk(Path(gettempdir())), TemporaryFile() as content:
        try:
            with ExitStack() as stack:
                shutil.copyfileobj(_open(stack, path, member), content, _BLOCK)
        except _DAMAGE as error:
            if isinstance(error, OSError) and error.errno not in _DAMAGE_NUMBERS:
                raise
            reason = str(error).partition("\n")[0]
            raise DataError(
                f"{path}: is truncated or damaged ({reason}); remove it and fetch it again"
            ) from error
        content.seek(0)
        yield content


class _Entry(NamedTuple):
    """A member of an archive.

    Attributes:
        name: its name in the archive.
        link: what it links to, from the top of the archive; None: it is not a link.
        is_file: whether it has content.
        info: the library's object for it.
    """

    name: str
    link: str | None
    is_file: bool
    info: Any


def _open(stack: ExitStack, path: Path, member: str) -> IO[bytes]:
    if not member:
        opener: Any = _COMPRESSED.get(path.suffix, open)
        return stack.enter_context(opener(path, "rb"))
    if path.name.endswith(".zip"):
        archive: Any = stack.enter_context(zipfile.ZipFile(path))
        entries = iter([_inside(_zip_entry(archive, info), path) for info in archive.infolist()])
        return stack.enter_context(archive.open(_find(entries, path, member).info))
    mode: Any = next(f"r:{mode}" for suffix, mode in TARS.items() if path.name.endswith(suffix))
    archive = stack.enter_context(tarfile.TarFile.open(path, mode))
    entries = (_inside(_tar_entry(info), path) for info in archive)
    return stack.enter_context(archive.extractfile(_find(entries, path, member).info))


def _find(entries: Iterator[_Entry], archive: Path, member: str) -> _Entry:
    """Return the member with this name."""
    names = []
    for entry in entries:
        name = posixpath.normpath(entry.name)
        if name == posixpath.normpath(member):
            if not entry.is_file:
                what = "a folder" if entry.link is None else f"a link to {_show(entry.link)}"
                raise DataError(f"{archive}: {member} is {what}; name a file")
            return entry
        names.append(name)
    near = ", ".join(map(_show, get_close_matches(member, names, cutoff=0))) or "nothing"
    raise DataError(f"{archive}: has no {member}; most similar: {near}")


def _inside(entry: _Entry, archive: Path) -> _Entry:
    """Refuse an archive with a member outside its folder, even though it is not unpacked."""
    outside = entry.name.startswith("/") or ".." in entry.name.split("/")
    if entry.link is not None:
        target = posixpath.normpath(entry.link)
        outside |= target.startswith("/") or target.split("/")[0] == ".."
    if outside:
        raise DataError(
            f"{archive}: has a member that would be unpacked outside its folder "
            f"({_show(entry.name)}); the archive is damaged or malicious: remove it and fetch it "
            "again"
        )
    return entry


def _show(name: str) -> str:
    """Return a member's name as printable text on one line."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def _tar_entry(info: tarfile.TarInfo) -> _Entry:
    link = None
    if info.islnk():
        link = info.linkname
    elif info.issym():
        link = posixpath.join(posixpath.dirname(info.name), info.linkname)
    return _Entry(info.name, link, info.isreg(), info)


def _zip_entry(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Entry:
    link = None
    if stat.S_ISLNK(info.external_attr >> 16):
        link = posixpath.join(posixpath.dirname(info.filename), os.fsdecode(file.read(info)))
    is_file = link is None and not info.filename.endswith("/")
    return _Entry(info.filename, link, is_file, info)
