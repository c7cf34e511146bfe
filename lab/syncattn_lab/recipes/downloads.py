"""Download files from the web, complete and verified or not at all."""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import requests
from tqdm import tqdm
from urllib3.exceptions import HTTPError

from syncattn_fairseq import __version__
from syncattn_fairseq.base.errors import DataError, naming_full_disk, printable, shorten
from syncattn_fairseq.base.files import hash_file
from syncattn_fairseq.base.locks import claiming, refuse_links
from syncattn_fairseq.base.text import read_file_lines

#: Environment variable with the base URLs of mirrors, separated by spaces.
MIRRORS = "SYNCATTN_MIRROR"

#: File of the checksums of first downloads, in the format of ``sha256sum``, where none is
#: published.
SUMS = "SHA256SUMS"

#: Seconds without a byte after which a connection counts as broken.
SILENCE = 60.0
#: Seconds that a request may take, and the number of received bytes that add a second to them.
PATIENCE = 300.0
SLOWEST = 10_000
#: Seconds before the next request after a broken one.
PAUSE = 2.0
#: The most bytes of a file whose size is not known beforehand.
MOST = 20 * 10**9

_BLOCK = 1 << 14
_HEADERS = {"User-Agent": f"syncattn-fairseq/{__version__}", "Accept-Encoding": "identity"}

#: The expected size and checksums of a file, by name; None: unknown.
Expected = dict[str, int | str | None]


class _Failure(Exception):
    """Raised if a server does not deliver the file."""


def fetch(
    url: str,
    directory: Path,
    name: str | None = None,
    sha256: str | None = None,
    size: int | None = None,
    md5: str | None = None,
) -> Path:
    """Download and verify a file, unless the file exists, and return the file's path.

    It is written to ``.NAME.part`` and renamed when it is complete and verified. After an
    interruption, only the rest is downloaded if a checksum is known and the server can do so.
    Mirrors are tried first, with the URL ``BASE/HOST/PATH``, the layout of ``wget -x``.

    Args:
        url: http, https or file.
        directory: the folder for the file.
        name: the file's name in the directory; None: the last part of the URL's path.
        sha256, md5: its checksums, in hexadecimal. Without them, the first download's is noted in
            `SUMS`, and later downloads are compared with that; a server that cannot show that a
            first download is complete and unchanged is refused.
        size: the expected size in bytes; None: unknown.

    Raises:
        DataError: the file cannot be downloaded, it is not the expected one, or another run is
            downloading it.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise DataError(f"{url}: not a URL: {error}") from None
    if name is None:
        name = unquote(parts.path).rpartition("/")[2]
    # SUMS has a line for each name; a file that is called SUMS would replace it.
    if name in ("", ".", "..", SUMS) or "/" in name or not name.isprintable():
        raise DataError(
            f"{url}: {name!r} cannot be the name of a downloaded file; give another name (--name)"
        )
    target, sums = directory / name, directory / SUMS
    noted = None if sha256 or md5 else _find_sum(sums, name)
    expected: Expected = {"size": size, "SHA-256": sha256 or noted, "MD5": md5}
    if not target.exists():
        with claiming(target):
            if not target.exists():  # else: another run has finished it
                _Download(target, expected).run(url)
    if not target.is_file():
        raise DataError(
            f"{target}: is not a regular file; move it away, then run the command again"
        )
    for what, value, actual in _compare(target, expected):
        first = f" as before ({sums})" if noted and what == "SHA-256" else ""
        raise DataError(
            f"{target}: has {what} {actual}, expected {value}{first}; remove the file, then "
            "fetch it again"
        )
    if not (sha256 or md5 or noted):
        refuse_links(sums)
        with sums.open("a", encoding="utf-8") as file:
            file.write(f"{hash_file(target)}  {name}\n")
    return target


def probe(url: str, size: int | None = None) -> None:
    """Raise `DataError` unless a file of this size can be had from its address or from a mirror."""

    def ask(address: str) -> None:
        if address.startswith("file:"):
            _find_local(address)
            return
        with _request(address) as answer:
            if answer.status_code != 200:
                raise _Failure(f"{answer.status_code} {answer.reason}")
            if size and (length := answer.raw.length_remaining or size) != size:
                raise _Failure(
                    f"the file has {length} bytes, expected {size}; the file on the server may "
                    "have changed"
                )

    try:
        _try_all(url, ask)
    except _Failure as failure:
        raise DataError(str(failure)) from None


def _try_all(url: str, action: Callable[[str], None]) -> None:
    """Call ``action`` with each address of a file, mirrors first, until a call succeeds."""
    parts, failures = urlsplit(url), []
    mirrors = os.environ.get(MIRRORS, "").split() if parts.netloc else []
    for address in (*(f"{base.rstrip('/')}/{parts.netloc}{parts.path}" for base in mirrors), url):
        try:
            return action(address)
        except _Failure as failure:
            failures.append(f"{address}: {printable(shorten(failure, 300))}")
    raise _Failure("; ".join(failures))


def _request(url: str, begin: int = 0) -> requests.Response:
    headers = _HEADERS | ({"Range": f"bytes={begin}-"} if begin else {})
    with _network():
        return requests.get(url, headers=headers, stream=True, timeout=SILENCE)


def _find_local(url: str) -> Path:
    path = Path(unquote(urlsplit(url).path))
    if not path.is_file():
        raise _Failure("no such file")
    return path


def _find_sum(path: Path, name: str) -> str | None:
    sums: dict[str, str] = {}
    for number, line in enumerate(read_file_lines(path) if path.exists() else (), 1):
        entry = re.fullmatch(r"([0-9a-fA-F]{64}) [ *](.+)", line)
        if entry is None:
            raise DataError(f"{path}:{number}: expected a SHA-256 and a name; correct this line")
        sums.setdefault(entry[2], entry[1])
    return sums.get(name)


def _compare(path: Path, expected: Expected) -> Iterator[tuple[str, object, object]]:
    """Yield each differing property of a file: name, expected value and actual value."""
    for what, value in expected.items():
        if value is not None:
            sized = what == "size"
            actual = path.stat().st_size if sized else hash_file(path, what.replace("-", ""))
            if actual != (value if sized else str(value).lower()):
                yield what, value, actual


class _Download:
    """The download of a file; with a known checksum, a later run continues the received part."""

    def __init__(self, target: Path, expected: Expected) -> None:
        self.target, self.expected = target, expected
        self.verifiable = bool(expected["SHA-256"] or expected["MD5"])
        self.part = target.with_name(f".{target.name}.part")
        refuse_links(self.part)

    @property
    def size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def run(self, url: str) -> None:
        try:
            _try_all(url, self._receive_all)
            return os.replace(self.part, self.target)
        except _Failure as failure:
            kept = self.verifiable and self.size
            again = "run the same command again to continue, " if kept else ""
            raise DataError(
                f"{self.target}: not downloaded ({failure}); {again}name a mirror in {MIRRORS}, or "
                "put the file there by hand"
            ) from None
        finally:
            if not (self.verifiable and self.size):
                self.part.unlink(missing_ok=True)

    def _receive_all(self, url: str) -> None:
        """Request the file until it is complete or a request adds nothing; then verify the file."""
        before = furthest = self.size
        while True:
            try:
                self._receive(url)
                break
            except _Failure:
                if not self.verifiable or self.size <= furthest:
                    raise
                furthest = self.size
            time.sleep(PAUSE)
        if not self.verifiable and not self.size:
            raise _Failure("the server sent an empty file")
        if faults := [*_compare(self.part, self.expected)]:
            self.part.unlink()
            if before:  # of another version
                return self._receive_all(url)
            what, value, actual = faults[0]
            raise _Failure(
                f"{what} is {actual}, expected {value}; the file on the server may have changed"
            )

    def _receive(self, url: str) -> None:
        if url.startswith("file:"):
            shutil.copyfile(_find_local(url), self.part)
            return
        begin = self.size if self.verifiable else 0
        with _request(url, begin) as answer:
            if begin and answer.status_code in (206, 416):
                if not answer.headers.get("Content-Range", "").startswith(f"bytes {begin}-"):
                    self.part.unlink()  # not the rest: ask for all of it
                    return self._receive(url)
            elif answer.status_code != 200:
                raise _Failure(f"{answer.status_code} {answer.reason}")
            else:
                begin = 0
            self._check(answer)
            self._write(answer, begin)

    def _check(self, answer: requests.Response) -> None:
        """Raise `_Failure` if an answer is not the file, or if damage to it would go unnoticed."""
        kind = answer.headers.get("Content-Type", "").lower()
        if kind.startswith("text/html") and self.target.suffix not in (".html", ".htm"):
            raise _Failure(
                "the server sent a web page instead of the file; the file may have moved"
            )
        if self.verifiable:
            return
        coding = answer.headers.get("Content-Encoding", "identity")
        if coding.lower() != "identity":
            raise _Failure(
                f"the server sent the file in the coding {coding}, which cannot be verified "
                "without a checksum"
            )
        ends = answer.raw.chunked or answer.raw.length_remaining is not None
        if not ends and not self.expected["size"]:
            raise _Failure(
                "the server did not send the length of the file, so a partial file could not be "
                "recognised"
            )

    def _write(self, answer: requests.Response, begin: int) -> None:
        answer.raw.enforce_content_length = True
        blocks = answer.raw.stream(_BLOCK, decode_content=False)
        position, start = begin, time.monotonic()
        total, most = begin + (answer.raw.length_remaining or 0), int(self.expected["size"] or MOST)
        named = {"desc": self.target.name, "initial": begin, "total": total, "disable": None}
        with (
            naming_full_disk(self.part),
            self.part.open("ab" if begin else "wb") as part,
            tqdm.wrapattr(part, "write", **named) as file,
        ):
            while True:
                with _network():
                    block = next(blocks, b"")
                if not block:
                    return
                position += len(block)
                if max(position, total) > most:
                    part.truncate(0)
                    raise _Failure(
                        f"the file has more than {most} bytes; the file on the server may have "
                        "changed"
                    )
                file.write(block)
                if time.monotonic() - start > PATIENCE + (position - begin) / SLOWEST:
                    raise _Failure(f"too slow: fewer than {SLOWEST} bytes per second")


@contextmanager
def _network() -> Iterator[None]:
    """Turn network errors into `_Failure`, with the message of their first cause."""
    try:
        yield
    except (OSError, HTTPError, ValueError) as error:
        first: BaseException = error
        while first.__context__ and not isinstance(first.__context__, ValueError):
            first = first.__context__
        raise _Failure(str(first) if isinstance(first, OSError) else repr(first)) from None
