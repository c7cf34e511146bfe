"""Serve a model over HTTP, even to slow, broken or hostile clients."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..base.errors import DataError, printable, shorten
from ..data.words import find_words, is_raw
from ..inference import Model
from .service import SECONDS_TO_ARRIVE, SECONDS_TO_END, Limits, Service

#: The most connections at a time, below the number of files that a process may open; others are
#: closed at once.
MOST_CONNECTIONS = 500

_POLICY = (
    *("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"),
    *("img-src blob: data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"),
)
#: Headers of every answer: a browser runs only the page's script, and shows it in no frame.
_HEADERS = [
    ("content-security-policy", "; ".join(_POLICY)),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
]


#: The number of mallopt's parameter M_ARENA_MAX.
_ARENA_MAX = -8
_NOT_HTTP = b'{"error":"not HTTP that can be read"}'


class _Connection(H11Protocol):
    """A client's connection with time limits for sending a request and taking an answer."""

    _clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_clock()
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:  # there is a request, which the service waits for
            self._stop_clock()

    def on_response_complete(self) -> None:
        self._start_clock()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is not HTTP, if no answer has begun, and close the connection."""
        if self.cycle is not None:
            self.cycle.disconnected = True  # whatever else the service says is thrown away
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [
                *self.server_state.default_headers,
                (b"content-type", b"application/json"),
                (b"content-length", str(len(_NOT_HTTP)).encode()),
                (b"connection", b"close"),
            ]
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=_NOT_HTTP),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
            assert isinstance(self.app, Service)
            self.app.counters.requests["", 400] += 1
        self.transport.close()

    def _start_clock(self) -> None:
        self._stop_clock()
        self._clock = self.loop.call_later(SECONDS_TO_ARRIVE, self.transport.abort)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()


class _Server(uvicorn.Server):
    """Serves until SIGTERM or SIGINT, with a normal exit status.

    Args:
        service: what answers.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        super().__init__(
            uvicorn.Config(
                service,
                access_log=False,
                headers=_HEADERS,
                http=_Connection,
                interface="asgi3",
                lifespan="off",
                log_config=None,
                loop="asyncio",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=SECONDS_TO_END + 2,
                ws="none",
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and print the address and the model."""
        await super().startup(sockets)
        model = self.service.model
        for each in sockets or ():
            host, port = each.getsockname()[:2]
            host = f"[{host}]" if ":" in host else host
            about = f"{printable(model.name)}, {' to '.join(model.languages)}"
            print(f"http://{host}:{port}: {about}", flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shorten the time limits of running requests, and wait for their end."""
        self.service.close()
        await super().shutdown(sockets)
        print(f"stopped after {self.service.counters.requests.total()} requests", flush=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on signals, and do not raise the signals again afterwards."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


class _OneLine(logging.Formatter):
    """Formats each event as a single line, even an exception of Python."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
        return f"{record.levelname.lower()}: {printable(shorten(text))}"


def bind(host: str, port: int) -> socket.socket:
    """Bind a socket to a port, before time is spent on loading a model.

    Args:
        host: the name or address of one of this machine's networks.
        port: the port at that address; 0: a free port.

    Raises:
        DataError: there is no such address here, or another program has the port.
    """
    place = f"--host {host} --port {port}"
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        taken = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise DataError(f"{place}: {getattr(error, 'strerror', None) or error}") from None
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
    except OSError as error:
        taken.close()
        raise DataError(f"{place}: {error.strerror}; choose another") from None
    return taken


def _share_heap() -> None:
    """Let threads share glibc's heap, since a separate heap would keep a batch's memory."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl and macOS have none
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)


def serve(model: Model, taken: socket.socket, limits: Limits) -> None:
    """Serve a model over HTTP until SIGTERM or SIGINT.

    Args:
        model: the model.
        taken: the socket that `bind` returned.
        limits: the limits above which requests are refused.

    Raises:
        DataError: the model cannot translate, such as for lack of a parser; or the splitter that
            finds the words on the page is not installed.
    """
    _share_heap()
    for segmenter in (model.source_segmenter, model.target_segmenter):
        if is_raw(segmenter.scheme):
            find_words("a", segmenter.scheme)
    model.translate(["a"], warn=False)
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    logging.basicConfig(handlers=[handler], level=logging.ERROR, force=True)
    service = Service(model, limits)
    _Server(service).run([taken])
    if service.running:  # nothing ends a batch in its middle, and nobody waits for it
        sys.stdout.flush()
        os._exit(0)
