"""What a server answers, received in a thread, so that no server can keep us waiting for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from queue import Empty, Queue
from threading import Event, Thread
from time import monotonic
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ...base.errors import printable
from ...base.text import join_line

#: Seconds without a byte after which a connection counts as broken.
SILENCE = 60.0

#: Seconds that a download may take whatever comes, and bytes that buy it another second.
PATIENCE = 300.0
SLOWEST = 10_000

_BLOCK = 1 << 16
#: Blocks that may wait to be written.
_AHEAD = 8


class Failure(Exception):
    """A server does not deliver the file.

    Args:
        reason: why not, often in the server's own words.
        status: the server's status, if it answered.
    """

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(printable(join_line(reason)[:300]))
        self.status = status


class Pace:
    """How long a download may still take.

    Args:
        begin: bytes that an earlier run has received.
    """

    def __init__(self, begin: int) -> None:
        self._furthest = self._begin = begin
        self._start = monotonic()

    def reach(self, size: int) -> None:
        """Allow more time if there are now more bytes than ever before."""
        self._furthest = max(self._furthest, size)

    def left(self) -> float:
        """Return the seconds until it counts as too slow."""
        allowed = PATIENCE + (self._furthest - self._begin) / SLOWEST
        return allowed - (monotonic() - self._start)


class Incoming:
    """An answer; as a context manager, the connection is closed when its block ends.

    Args:
        url: what to ask for.
        headers: of the request.
        pace: how long it may take.

    Attributes:
        answer: its status and headers.

    Raises:
        Failure: there is no answer.
    """

    def __init__(self, url: str, headers: dict[str, str], pace: Pace) -> None:
        self._pace = pace
        self._items: Queue[Any] = Queue(_AHEAD)
        self._left = Event()
        Thread(target=self._receive, args=(url, headers), daemon=True).start()
        try:
            self.answer = self._next()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Incoming:
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        with suppress(Empty):  # room for what the thread is about to say; then it ends
            while True:
                self._items.get_nowait()

    def read(self) -> bytes:
        """Return the next bytes; nothing at the end.

        Raises:
            Failure: the connection is broken, silent or too slow.
        """
        block: bytes = self._next()
        return block

    def _next(self) -> Any:
        try:
            item = self._items.get(timeout=max(self._pace.left(), 0))
        except Empty:
            raise Failure(f"too slow: fewer than {SLOWEST} bytes per second") from None
        if isinstance(item, Exception):
            raise item
        return item

    def _receive(self, url: str, headers: dict[str, str]) -> None:
        try:
            with _network(), urlopen(Request(url, headers=headers), timeout=SILENCE) as answer:
                self._items.put(answer)
                while not self._left.is_set():
                    block = answer.read1(_BLOCK)
                    self._items.put(block)
                    if not block:
                        return
        except Exception as error:
            self._items.put(error)


@contextmanager
def _network() -> Iterator[None]:
    """Turn network errors into `Failure`."""
    try:
        yield
    except HTTPError as error:
        error.close()
        raise Failure(f"{error.code} {error.reason}", error.code) from None
    except (OSError, HTTPException, ValueError) as error:
        raise Failure(str(getattr(error, "reason", error)) or repr(error)) from None
