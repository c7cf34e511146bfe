"""A download from one URL: what is asked for, and which answers are the file."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from ... import __version__
from ...base.files import hash_file
from .incoming import Failure, Incoming, Pace
from .partial_file import Origin, PartialFile

#: Seconds before each new attempt; starts over whenever an attempt gets further.
PAUSES = (1.0, 5.0, 15.0)

#: The most bytes of a file whose size is not known beforehand.
MOST = 20 * 10**9

_NUMBER = re.compile("[0-9]{1,15}")
_RANGE = re.compile("bytes ([0-9]{1,15})-[0-9]{1,15}/([0-9]{1,15})")
#: ``Content-Encoding`` of a file that is sent as it is.
_AS_IT_IS = ("", "identity")


class Expected(NamedTuple):
    """What is known about a file; None: unknown."""

    size: int | None = None
    sha256: str | None = None
    md5: str | None = None

    @property
    def has_sum(self) -> bool:
        """Whether a checksum decides if a file is the right one."""
        return bool(self.sha256 or self.md5)

    def differences(self, path: Path) -> Iterator[tuple[str, object, object]]:
        """Yield what is wrong with a file: the property, the expected and the actual value."""
        if self.size is not None and (size := path.stat().st_size) != self.size:
            yield "size", self.size, size
        for what, expected, algorithm in (
            ("SHA-256", self.sha256, "sha256"),
            ("MD5", self.md5, "md5"),
        ):
            if expected and (actual := hash_file(path, algorithm)) != expected.lower():
                yield what, expected.lower(), actual


def download(part: PartialFile, url: str, expected: Expected) -> None:
    """Make requests until the part is complete, as long as they make progress; then verify it.

    Raises:
        Failure: it is not complete, or not the expected file.
    """
    furthest = part.size if _origin_at(url, part) else 0
    pace = Pace(furthest)
    pauses: Iterator[float] = iter(())
    while True:
        try:
            _request(part, url, expected, pace)
            break
        except Failure:
            # A server that cannot send the rest may fail at the same byte forever.
            if part.size > furthest:
                furthest, pauses = part.size, iter(PAUSES)
            pause = next(pauses, None)
            if pause is None or pause > pace.left():
                raise
        time.sleep(pause)
    part.flush()
    for what, value, actual in expected.differences(part.path):
        part.clear()
        raise Failure(f"{what} {actual}, expected {value}; has it changed there?")


def _origin_at(url: str, part: PartialFile) -> Origin | None:
    """Return the origin of a partial file if ``url`` can send the rest."""
    origin = part.origin()
    return origin if origin is not None and origin.url == url else None


def _request(part: PartialFile, url: str, expected: Expected, pace: Pace) -> None:
    """Make one request, and keep what arrives."""
    origin = _origin_at(url, part)
    headers = {"User-Agent": f"syncattn-fairseq/{__version__}"}
    if origin is not None:
        if part.size == origin.size:
            return
        headers |= {"Range": f"bytes={part.size}-", "If-Range": str(origin.version)}
    try:
        incoming = Incoming(url, headers, pace)
    except Failure as failure:
        if failure.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.clear()  # the file has become shorter
        raise
    with incoming:
        answer = incoming.answer
        _check(answer, expected, part.target)
        described = _describe(answer, url)
        if answer.status == HTTPStatus.PARTIAL_CONTENT:
            size = _size_of_rest(answer, origin, described, part.size)
            if size is None:
                part.clear()
                raise Failure("the server sent a part of another file than before")
        else:
            size = described.size
            _check_size(described.size, expected)
            part.begin(described)
        _read(part, incoming, size, expected.size or MOST, pace)
    if not part.size and not expected.has_sum:
        raise Failure("the server sent an empty file")


def _read(part: PartialFile, incoming: Incoming, size: int | None, most: int, pace: Pace) -> None:
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
        while part.size != size and (block := incoming.read()):
            if part.size + len(block) > most:
                part.clear()
                raise Failure(f"more than {most} bytes; has it changed there?")
            part.append(block)
            pace.reach(part.size)
            bar.update(len(block))
    if size is not None and part.size != size:
        raise Failure(f"the connection broke after {part.size} of {size} bytes")


def _describe(answer: Any, url: str) -> Origin:
    """Return the origin of a file from the response's headers."""
    tag = answer.headers["ETag"]
    # Only a strong ETag guarantees that two files are the same byte for byte.
    version = answer.headers["Last-Modified"] if tag is None or tag.startswith("W/") else tag
    length = None if _is_chunked(answer) else _read_length(answer)
    return Origin(url, version, length)


def _read_length(answer: Any) -> int | None:
    length = answer.headers["Content-Length"] or ""
    return int(length) if _NUMBER.fullmatch(length) else None


def _is_chunked(answer: Any) -> bool:
    """Tell whether the end of an answer is marked, so that it needs no length."""
    return bool(getattr(answer, "chunked", False))


def _check(answer: Any, expected: Expected, target: Path) -> None:
    """Refuse an answer that cannot be the file, or that nobody could tell from the file."""
    if answer.status not in (None, HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
        raise Failure(f"status {answer.status} in place of the file")
    kind = answer.headers.get_content_type()
    if kind == "text/html" and target.suffix not in (".html", ".htm"):
        raise Failure("a web page instead of the file; has it moved?")
    if expected.has_sum:
        return
    coding = answer.headers["Content-Encoding"] or ""
    if coding.strip().lower() not in _AS_IT_IS:
        raise Failure(f"sent in another coding ({coding}), which only a checksum could verify")
    ends = _is_chunked(answer) or _read_length(answer) is not None or expected.size is not None
    if not ends:
        raise Failure("sent without its length, so that a part of it would pass for the whole")


def _check_size(size: int | None, expected: Expected) -> None:
    if size is None:
        return
    if expected.size is not None and size != expected.size:
        raise Failure(f"size {size}, expected {expected.size}; has it changed there?")
    if expected.size is None and size > MOST:
        raise Failure(f"{size} bytes; give its size if that is right")


def _size_of_rest(answer: Any, origin: Origin | None, described: Origin, begin: int) -> int | None:
    """Return the size of the whole file if an answer is its rest from ``begin``."""
    content_range = _RANGE.fullmatch(answer.headers["Content-Range"] or "")
    if origin is None or content_range is None or int(content_range[1]) != begin:
        return None
    size = int(content_range[2])
    same = described.version == origin.version and origin.size in (None, size)
    return size if same else None
