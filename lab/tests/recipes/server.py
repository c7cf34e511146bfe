"""A server of the files of a folder, on this machine, that can misbehave like those on the web."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit


class Seen(NamedTuple):
    """A request: its path, the first byte that it asks for, and the status of the answer."""

    path: str
    begin: int
    status: int


@dataclass
class Server:
    """What the server serves, how it misbehaves, and what it was asked for.

    Attributes:
        folder: the paths of URLs are those in it; may change at any time.
        cuts: of each of the next answers, after how many bytes of it the connection breaks.
        ranges: whether a part of a file can be asked for.
        headers: more headers of all answers with a file; one that is None is left out.
        raw: the bytes of all answers, from the status line on; None: those of a file.
        pause: seconds before each of them.
    """

    folder: Path
    url: str
    requests: list[Seen] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    ranges: bool = True
    headers: dict[str, str | None] = field(default_factory=dict)
    raw: bytes | None = None
    pause: float = 0


@contextmanager
def serve(folder: Path) -> Iterator[Server]:
    """Serve a folder for the time of a block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as listener:
        listener.files = Server(folder, f"http://127.0.0.1:{listener.server_port}")  # type: ignore
        threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield listener.files  # type: ignore[attr-defined]
        finally:
            listener.shutdown()


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        files: Server = self.server.files  # type: ignore[attr-defined]
        path = urlsplit(self.path).path
        file = files.folder / unquote(path).lstrip("/")
        content = file.read_bytes() if file.is_file() else b""
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "")
        begin = int(asked[1]) if asked and files.ranges else 0
        rest = content[begin:]
        status = (206 if begin else 200) if rest else (416 if begin else 404)
        # Before the bytes, so that it is there when the client has them.
        files.requests.append(Seen(path, begin, status))
        if files.raw is not None:
            step = 1 if files.pause else len(files.raw)
            with suppress(OSError):  # the client has left
                for start in range(0, len(files.raw), step):
                    time.sleep(files.pause)
                    self.wfile.write(files.raw[start : start + step])
            return
        if not rest:
            return self.send_error(status)
        self.send_response(status)
        span = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        headers = {"Content-Length": str(len(rest)), "Content-Range": span}
        for name, value in {**headers, **files.headers}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(rest[: files.cuts.pop(0) if files.cuts else None])
