"""A server of the files of a folder, on this machine, that can misbehave like those on the web."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit


class Seen(NamedTuple):
    """A request: its path, the first byte that it asks for, and the answer to it."""

    path: str
    begin: int
    status: int
    sent: int


class Server:
    """What the server serves, how it misbehaves, and what it was asked for.

    Attributes:
        folder: the paths of URLs are those in it; may change at any time.
        url: of the folder.
        requests: all so far, in their order.
        cuts: of each of the next answers, after how many bytes of it the connection breaks.
        hangs: such a connection stays open, without a byte.
        version: what tells the versions of a file apart: ``"tag"`` (an ETag), ``"date"``,
            ``"weak"`` (a date and an ETag that does not count), or None.
        content_type: of all answers.
        lengths: whether answers say how long they are.
        ranges: whether a part of a file can be asked for; ``"always"``: even of another version.
        status: of answers with a whole file.
        headers: more headers of all answers.
        raw: the bytes of all answers, from the status line on; None: those of a file.
        pause: seconds before each byte of these.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.requests: list[Seen] = []
        self.cuts: list[int] = []
        self.hangs = False
        self.version: str | None = "tag"
        self.content_type = "application/octet-stream"
        self.lengths = True
        self.ranges: bool | str = True
        self.status = 200
        self.headers: dict[str, str] = {}
        self.raw: bytes | None = None
        self.pause = 0.0

    def paths(self) -> list[str]:
        """Return the paths of all requests so far."""
        return [seen.path for seen in self.requests]


@contextmanager
def serve(folder: Path) -> Iterator[Server]:
    """Serve a folder for the time of a block."""
    listener = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    listener.daemon_threads = True
    listener.files = Server(folder, f"http://127.0.0.1:{listener.server_port}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield listener.files  # type: ignore[attr-defined]
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        files: Server = self.server.files  # type: ignore[attr-defined]
        path = urlsplit(self.path).path
        if files.raw is not None:
            files.requests.append(Seen(path, 0, 0, len(files.raw)))
            return self.send_raw(files.raw, files.pause)
        file = files.folder / unquote(path).lstrip("/")
        if not file.is_file():
            files.requests.append(Seen(path, 0, 404, 0))
            return self.send_error(404)
        content = file.read_bytes()
        tag = f'"{hashlib.sha256(content).hexdigest()}"'
        date = self.date_time_string(int(file.stat().st_mtime))
        version = tag if files.version == "tag" else date
        begin = 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "")
        same = files.ranges == "always" or self.headers["If-Range"] == version
        if asked and files.ranges and same:
            begin = int(asked[1])
        if begin and begin >= len(content):
            files.requests.append(Seen(path, begin, 416, 0))
            return self.send_error(416)
        status, rest = (206 if begin else files.status), content[begin:]
        cut = files.cuts.pop(0) if files.cuts else len(rest)
        # Before the bytes, so that it is there when the client has them.
        files.requests.append(Seen(path, begin, status, len(rest[:cut])))
        self.send_response(status)
        self.send_header("Content-Type", files.content_type)
        if files.lengths:
            self.send_header("Content-Length", str(len(rest)))
        if files.version in ("tag", "weak"):
            self.send_header("ETag", tag if files.version == "tag" else f"W/{tag}")
        if files.version in ("date", "weak"):
            self.send_header("Last-Modified", date)
        if begin:
            total = f"{begin}-{len(content) - 1}/{len(content)}"
            self.send_header("Content-Range", f"bytes {total}")
        for name, value in files.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(rest[:cut])
        if cut < len(rest) and files.hangs:
            self.rfile.read(1)  # until the client gives up

    def send_raw(self, answer: bytes, pause: float) -> None:
        with suppress(OSError):  # the client has left
            for begin in range(0, len(answer), 1 if pause else len(answer)):
                time.sleep(pause)
                self.wfile.write(answer[begin:] if not pause else answer[begin : begin + 1])
                self.wfile.flush()
