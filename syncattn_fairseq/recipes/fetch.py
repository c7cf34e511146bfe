"""Files from the web: complete and verified, or not at all."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from tqdm import tqdm

from .. import __version__
from ..base.errors import DataError
from ..base.files import hash_file, replacing

#: Environment variable with the base URLs of mirrors, separated by spaces.
MIRRORS = "SYNCATTN_MIRROR"

#: File with the checksums of first downloads, for files without published ones.
SUMS = "SHA256SUMS"

#: Seconds without a byte after which a connection counts as broken.
SILENCE = 60.0

#: Seconds before each new attempt; starts over whenever an attempt gets further.
PAUSES = (1.0, 5.0, 15.0)

_BLOCK = 1 << 16


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
        next to it, and later downloads are compared with that.

    Raises:
        DataError: the file cannot be downloaded, it is not the expected one, or another run is
            downloading it.
    """
    try:
        path = urlsplit(url).path
    except ValueError as error:
        raise DataError(f"{url}: not a URL: {error}") from None
    if name is None:
        name = unquote(path).rpartition("/")[2]
    if name in ("", ".", "..") or {"/", "\0"} & set(name):
        raise DataError(f"{url}: {name!r} is not a file name; give one")
    target = directory / name
    sums = _Sums(directory / SUMS)
    expected = _Expected(size, sha256 or (None if md5 else sums.of(name)), md5)
    if not target.exists():
        directory.mkdir(parents=True, exist_ok=True)
        with _open_part(target) as part:
            if not target.exists():  # else: another run has finished it
                _fill(part, url, expected)
                part.publish()
    for what, wanted, found in expected.differences(target):
        first = f" as before ({sums.path})" if not sha256 and what == "SHA-256" else ""
        raise DataError(
            f"{target}: has {what} {found}, not {wanted}{first}; remove it, then fetch it again"
        )
    if not sha256 and not md5:
        sums.note(name, target)
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


class _Expected(NamedTuple):
    """What is known about a file; None: unknown."""

    size: int | None = None
    sha256: str | None = None
    md5: str | None = None

    def differences(self, path: Path) -> Iterator[tuple[str, object, object]]:
        """Yield what is wrong with a file: the property, the expected and the found value."""
        if self.size is not None and (size := path.stat().st_size) != self.size:
            yield "size", self.size, size
        for what, expected, algorithm in (
            ("SHA-256", self.sha256, "sha256"),
            ("MD5", self.md5, "md5"),
        ):
            if expected and (found := hash_file(path, algorithm)) != expected.lower():
                yield what, expected.lower(), found


class _Sums:
    """Checksums of first downloads, in the format of ``sha256sum``.

    Args:
        path: the file with the checksums.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def of(self, name: str) -> str | None:
        """Return a file's checksum; None if there is none."""
        lines = self.path.read_text("utf-8").splitlines() if self.path.exists() else []
        return {line[66:]: line[:64] for line in lines}.get(name)

    def note(self, name: str, path: Path) -> None:
        """Add a file's checksum unless it has one."""
        if self.of(name) is None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{hash_file(path)}  {name}\n")


class _Failure(Exception):
    """A server does not deliver the file.

    Args:
        reason: why not.
        status: the server's status, if it answered.
    """

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


class _Origin(NamedTuple):
    """The file whose first bytes a partial file holds.

    Attributes:
        url: its URL.
        version: its ETag or date; None: unknown.
        size: bytes of the whole file; None: unknown.
    """

    url: str
    version: str | None
    size: int | None


class _Part:
    """A partial file that is being downloaded.

    Args:
        target: its final path.
        path: its path until then.
        file: the file, open for appending, and locked.

    Attributes:
        size: its bytes so far.
    """

    def __init__(self, target: Path, path: Path, file: BinaryIO) -> None:
        self.target = target
        self.path = path
        self.size = file.seek(0, os.SEEK_END)
        self._file = file
        self._note = path.with_name(path.name + ".json")

    def origin(self, url: str) -> _Origin | None:
        """Return the origin of this partial file if ``url`` can send the rest."""
        try:
            origin = _Origin(*json.loads(self._note.read_text("utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return origin if self.size and origin.url == url and origin.version else None

    def begin(self, origin: _Origin) -> None:
        """Start over with another origin."""
        self.clear()
        with replacing(self._note) as temporary:
            temporary.write_text(json.dumps(origin), "utf-8")

    def append(self, block: bytes) -> None:
        """Add received bytes."""
        self._file.write(block)
        self.size += len(block)

    def clear(self) -> None:
        """Discard the content."""
        self._note.unlink(missing_ok=True)
        self._file.truncate(0)
        self.size = 0

    def verify(self, expected: _Expected) -> None:
        """Compare the file with what is expected; discard it if it differs.

        Raises:
            _Failure: it differs.
        """
        self._file.flush()
        for what, wanted, found in expected.differences(self.path):
            self.clear()
            raise _Failure(f"{what} {found}, expected {wanted}; has it changed there?")

    def publish(self) -> None:
        """Move the file to its final path."""
        os.replace(self.path, self.target)
        self._note.unlink(missing_ok=True)


@contextmanager
def _open_part(target: Path) -> Iterator[_Part]:
    path = target.with_name(f".{target.name}.part")
    try:
        # A link would redirect the download elsewhere.
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DataError(f"{path}: this is a link; remove it, then fetch again") from None
        raise
    with open(descriptor, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            running = not os.fstat(file.fileno()).st_nlink  # removed before we had the lock
        except BlockingIOError:
            running = True
        if running:
            raise DataError(f"{target}: another download of it is running; wait until it ends")
        part = _Part(target, path, file)
        try:
            yield part
        finally:
            if not part.size:
                path.unlink(missing_ok=True)


def _fill(part: _Part, url: str, expected: _Expected) -> None:
    """Download from the first place that has the file."""
    failures = []
    for place in _places(url):
        try:
            _download(part, place, expected.size)
            part.verify(expected)
            return
        except _Failure as failure:
            failures.append(f"{place}: {failure}")
    again = "run the same command again to continue, " if part.size else ""
    raise DataError(
        f"{part.target}: not downloaded ({'; '.join(failures)}); {again}name a mirror in "
        f"{MIRRORS}, or put the file there by hand"
    )


def _places(url: str) -> list[str]:
    parts = urlsplit(url)
    mirrors = os.environ.get(MIRRORS, "").split() if parts.netloc else []
    return [*(f"{base.rstrip('/')}/{parts.netloc}{parts.path}" for base in mirrors), url]


def _download(part: _Part, url: str, size: int | None) -> None:
    """Make requests until the part is complete, as long as they make progress."""
    furthest = part.size if part.origin(url) else 0
    pauses: Iterator[float] = iter(())
    while True:
        try:
            return _request(part, url, size)
        except _Failure:
            # A server that cannot send the rest may fail at the same byte forever.
            if part.size > furthest:
                furthest, pauses = part.size, iter(PAUSES)
            pause = next(pauses, None)
            if pause is None:
                raise
        time.sleep(pause)


def _request(part: _Part, url: str, size: int | None) -> None:
    """Make one request, and keep what arrives."""
    origin = part.origin(url)
    headers = {"User-Agent": f"syncattn-fairseq/{__version__}"}
    if origin is not None:
        if part.size == origin.size:
            return
        headers |= {"Range": f"bytes={part.size}-", "If-Range": str(origin.version)}
    try:
        with _network():
            answer = urlopen(Request(url, headers=headers), timeout=SILENCE)
    except _Failure as failure:
        if failure.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.clear()  # the file has become shorter
        raise
    with answer:
        if answer.status == HTTPStatus.PARTIAL_CONTENT:
            if not _continues(origin, part.size, answer.headers["Content-Range"]):
                part.clear()
                raise _Failure("the server sent another part of the file than asked for")
        else:
            origin = _described(answer, url)
            _check(origin, size, part.target, answer)
            part.begin(origin)
        assert origin is not None
        _read(part, answer, origin.size)


def _read(part: _Part, answer: Any, size: int | None) -> None:
    bar = tqdm(
        desc=part.target.name,
        initial=part.size,
        total=size,
        unit="B",
        unit_scale=True,
        unit_divisor=1024,
        disable=None,
    )
    with bar:
        while part.size != size:
            with _network():
                block = answer.read1(_BLOCK)
            if not block:
                break
            part.append(block)
            bar.update(len(block))
    if size is not None and part.size != size:
        raise _Failure(f"the connection broke after {part.size} of {size} bytes")


@contextmanager
def _network() -> Iterator[None]:
    """Turn network errors, but not disk errors, into `_Failure`."""
    try:
        yield
    except HTTPError as error:
        raise _Failure(f"{error.code} {error.reason}", error.code) from error
    except (OSError, HTTPException, ValueError) as error:
        raise _Failure(str(getattr(error, "reason", error)) or repr(error)) from error


def _described(answer: Any, url: str) -> _Origin:
    """Return the origin of a complete file from the response's headers."""
    tag = answer.headers["ETag"]
    # Only a strong ETag guarantees that two files are the same byte for byte.
    version = answer.headers["Last-Modified"] if tag is None or tag.startswith("W/") else tag
    length = answer.headers["Content-Length"] or ""
    return _Origin(url, version, int(length) if length.isdecimal() else None)


def _check(origin: _Origin, size: int | None, target: Path, answer: Any) -> None:
    """Refuse a response that cannot be the file, before it is downloaded."""
    if size is not None and origin.size not in (None, size):
        raise _Failure(f"size {origin.size}, expected {size}; has it changed there?")
    kind = answer.headers.get_content_type()
    if kind == "text/html" and target.suffix not in (".html", ".htm"):
        raise _Failure("a web page instead of the file; has it moved?")


def _continues(origin: _Origin | None, begin: int, content_range: str | None) -> bool:
    """Tell whether a response is the rest of the file from ``begin``."""
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", content_range or "")
    return (
        origin is not None
        and found is not None
        and int(found[1]) == begin
        and origin.size in (None, int(found[2]))
    )
