"""Files from the web: complete and verified, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ...base.errors import DataError
from .download import Expected, download
from .incoming import Failure
from .partial_file import PartialFile, open_partial_file
from .sums import SUMS, find_sum, note_sum

#: Environment variable with the base URLs of mirrors, separated by spaces.
MIRRORS = "SYNCATTN_MIRROR"


def fetch(
    url: str,
    directory: Path,
    name: str | None = None,
    sha256: str | None = None,
    size: int | None = None,
    md5: str | None = None,
) -> Path:
    """Download a file unless it is already there.

    It is written to ``.NAME.part`` and renamed when it is complete and verified. After an
    interruption, only the rest is downloaded if the server supports it.

    The mirrors in ``SYNCATTN_MIRROR`` are tried first, with the URL ``BASE/HOST/PATH``, the layout
    of ``wget -x``.

    Args:
        url: http, https, ftp or file.
        directory: target folder; made if needed.
        name: the file's name there; None: the last part of the URL's path.
        sha256: its checksum, in hexadecimal.
        size: its size in bytes.
        md5: its MD5 sum, in hexadecimal.

    Returns:
        the file. If it has no published checksum, the first download's is noted in ``SHA256SUMS``
        next to it, and later downloads are compared with that. A server that cannot show that a
        first download is complete and unchanged is refused.

    Raises:
        DataError: the file cannot be downloaded, it is not the expected one, or another run is
            downloading it.
    """
    name = _name_of(url, name)
    target = directory / name
    sums = directory / SUMS
    expected = Expected(size, sha256 or (None if md5 else find_sum(sums, name)), md5)
    if not target.exists():
        with _make_folder(directory), open_partial_file(target) as part:
            if not target.exists():  # else: another run has finished it
                _fill(part, url, expected)
                part.publish()
    if not target.is_file():
        raise DataError(f"{target}: not a file; move it away, then fetch again")
    for what, value, actual in expected.differences(target):
        first = f" as before ({sums})" if not sha256 and what == "SHA-256" else ""
        raise DataError(
            f"{target}: has {what} {actual}, not {value}{first}; remove it, then fetch it again"
        )
    if not sha256 and not md5:
        note_sum(sums, target)
    return target


def licensed(name: str, directory: Path, licence: str) -> Path:
    """Return a file that users have to get themselves.

    Args:
        name: its name.
        directory: its folder.
        licence: how to get it.

    Raises:
        DataError: it is missing.
    """
    target = directory / name
    if not target.is_file():
        raise DataError(
            f"{target}: missing; it needs a signed licence, so put it there yourself: {licence}"
        )
    return target


def _name_of(url: str, name: str | None) -> str:
    """Return the name of a download."""
    if not url.isprintable():
        raise DataError(f"{url!r}: not a URL")
    try:
        path = urlsplit(url).path
    except ValueError as error:
        raise DataError(f"{url}: not a URL: {error}") from None
    if name is None:
        name = unquote(path).rpartition("/")[2]
    # SUMS has a line for each name; a file that is called SUMS would replace it.
    if name in ("", ".", "..", SUMS) or "/" in name or not name.isprintable():
        raise DataError(f"{url}: {name!r} is not a name for a download; give another one")
    return name


@contextmanager
def _make_folder(folder: Path) -> Iterator[None]:
    """Make a folder; if the block leaves nothing in it, remove it again."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with suppress(OSError):  # not empty
            for path in new:
                path.rmdir()


def _fill(part: PartialFile, url: str, expected: Expected) -> None:
    """Download from the first URL that has the file."""
    failures = []
    for source in _list_urls(url):
        try:
            return download(part, source, expected)
        except Failure as failure:
            failures.append(f"{source}: {failure}")
    again = "run the same command again to continue, " if part.origin() else ""
    raise DataError(
        f"{part.target}: not downloaded ({'; '.join(failures)}); {again}name a mirror in "
        f"{MIRRORS}, or put the file there by hand"
    )


def _list_urls(url: str) -> list[str]:
    parts = urlsplit(url)
    mirrors = os.environ.get(MIRRORS, "").split() if parts.netloc else []
    return [*(f"{base.rstrip('/')}/{parts.netloc}{parts.path}" for base in mirrors), url]
