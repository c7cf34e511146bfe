"""Downloads into the current folder from a server that misbehaves."""

import hashlib
import os
import resource
import socket
from pathlib import Path
from random import Random

import pytest

from lab.tests.recipes.server import Server, serve
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.locks import claiming
from syncattn_lab.recipes import downloads
from syncattn_lab.recipes.downloads import fetch

CONTENT = Random(1).randbytes(200_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
HERE, FILE = Path(), Path("file.tgz")
PART, SUMS = Path(".file.tgz.part"), Path("SHA256SUMS")
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
X = b"Content-Length: 1\r\n\r\nx"


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "PAUSE", 0)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with serve(tmp_path / "web") as server:
        put(server, CONTENT)
        yield server


def put(server: Server, content: bytes, path: str = "file.tgz") -> None:
    (server.folder / path).parent.mkdir(parents=True, exist_ok=True)
    (server.folder / path).write_bytes(content)


def get(server: Server, path: str = "file.tgz", **known: str | int) -> bytes:
    return fetch(f"{server.url}/{path}", HERE, **known).read_bytes()  # type: ignore[arg-type]


def refuse(reason: str, server: Server, path: str = "file.tgz", **known: str | int) -> str:
    """Check that a download fails in one line, which is returned, and leaves nothing behind."""
    before = {*HERE.iterdir()}
    with pytest.raises(DataError, match=reason) as caught:
        get(server, path, **known)
    assert {*HERE.iterdir()} == before and str(caught.value).isprintable()
    return str(caught.value)


def stop(server: Server) -> None:
    """Let a first run get 70,000 bytes."""
    server.cuts = [70_000, 0]
    with pytest.raises(DataError, match="IncompleteRead.*; run the same command again to continue"):
        get(server, sha256=SHA256)
    assert {*HERE.iterdir()} == {PART} and PART.read_bytes() == CONTENT[:70_000]
    server.requests.clear()


def begins(server: Server) -> list[int]:
    return [seen.begin for seen in server.requests]


# ---- what is fetched


def test_a_file_is_fetched_once(server):
    for _ in range(2):
        path = fetch(f"{server.url}/file.tgz", HERE / "a" / "b", None, SHA256.upper(), len(CONTENT))
        assert path == HERE / "a" / "b" / "file.tgz" and path.read_bytes() == CONTENT
    assert [*path.parent.iterdir()] == [path] and server.requests == [("/file.tgz", 0, 200)]


def test_the_name_is_the_last_part_of_the_path(server):
    put(server, b"x", "a b.txt")
    assert get(server, "a%20b.txt?download=1") == get(server, "a%20b.txt", name="c") == b"x"
    assert {*HERE.iterdir()} == {SUMS, Path("a b.txt"), Path("c")}
    for path in ("", "a/", "..", "%2e%2e", "a%00b", "a%0Ab", "SHA256SUMS"):
        refuse("cannot be the name of a downloaded file; give another name", server, path)
    with pytest.raises(DataError, match=r"http://\[::1/x: not a URL"):
        fetch("http://[::1/x", HERE)


def test_what_is_there_must_be_the_file(server):
    FILE.write_bytes(b"mine")
    refuse(r"file\.tgz: has size 4, expected 200000; remove the file", server, size=len(CONTENT))
    refuse(f"has SHA-256 [0-9a-f]+, expected {SHA256}; remove the file", server, sha256=SHA256)
    refuse("has MD5 [0-9a-f]+, expected 0{32}; remove the file", server, md5="0" * 32)
    assert get(server, size=4) == b"mine" and not server.requests
    os.mkfifo("pipe")
    refuse("pipe: is not a regular file; move it away", server, name="pipe")


# ---- what is broken off


def test_the_next_run_asks_for_the_rest(server):
    stop(server)
    assert get(server, sha256=SHA256) == CONTENT
    assert server.requests == [("/file.tgz", 70_000, 206)] and [*HERE.iterdir()] == [FILE]


def test_a_run_goes_on_only_where_the_file_can_be_verified(server):
    server.cuts = [70_000, 20_000]
    assert get(server, sha256=SHA256) == CONTENT and begins(server) == [0, 70_000, 90_000]
    server.cuts = [70_000]
    refuse("IncompleteRead", server, name="again")
    PART.write_bytes(CONTENT[:70_000])
    FILE.unlink()
    server.requests.clear()
    assert get(server) == CONTENT and begins(server) == [0]


@pytest.mark.parametrize("size", [60_000, 70_000, 150_000])
def test_halves_of_two_versions_are_not_joined(server, size):
    stop(server)
    new = b"x" * size
    put(server, new)
    assert get(server, sha256=hashlib.sha256(new).hexdigest()) == new
    assert begins(server) == [70_000, 0]


def test_what_begins_elsewhere_is_not_the_rest(server):
    stop(server)
    server.headers = {"Content-Range": "bytes 1-2/3"}
    assert get(server, sha256=SHA256) == CONTENT and begins(server) == [70_000, 0]


def test_a_server_without_ranges_is_not_asked_for_ever(server):
    server.ranges, server.cuts = False, [70_000] * 9
    with pytest.raises(DataError, match="run the same command again to continue"):
        get(server, sha256=SHA256)
    assert begins(server) == [0, 0]
    server.cuts = []
    assert get(server, sha256=SHA256) == CONTENT


def test_a_full_disk_is_not_the_fault_of_the_server(server):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: '\.file\.tgz\.part'"):
            get(server, sha256=SHA256)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert get(server, sha256=SHA256) == CONTENT and begins(server) == [0, 150_000]


# ---- what is refused


def test_what_is_known_of_a_file_decides(server, monkeypatch):
    error = refuse(f"SHA-256 is {SHA256}, expected 0{{64}}", server, sha256="0" * 64)
    for part in ("file.tgz: not downloaded", server.url, "SYNCATTN_MIRROR", "by hand"):
        assert part in error
    assert "run the same command again" not in error
    md5 = hashlib.md5(CONTENT).hexdigest()
    refuse(f"MD5 is {md5}, expected 1{{32}}; the file on the server may", server, md5="1" * 32)
    refuse("size is 200000, expected 200001; the file on the server may", server, size=200_001)
    for length in ("200000", None):
        server.headers = {"Content-Length": length}
        refuse("more than 199999 bytes; the file on the server may", server, size=199_999)
    assert get(server, md5=md5.upper()) == CONTENT and [*HERE.iterdir()] == [FILE]
    monkeypatch.setattr(downloads, "MOST", 9_999)
    refuse("more than 9999 bytes", server, name="b", sha256=SHA256)
    assert get(server, name="b", size=len(CONTENT)) == CONTENT


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 203 Other\r\n" + X, "203 Other"),
        (b"HTTP/1.1 206 Rest\r\n" + X, "206 Rest"),
        (b"HTTP/1.1 404 \x1b[31m\x85" + b" x" * 9000 + b"\r\n\r\n", r"404 \\x1b\[31m"),
        (b"HTTP/1.1 302 Moved\r\nLocation: /file.tgz\r\n\r\n", "Exceeded 30 redirects"),
        (OK + b"Content-Type: Text/HTML; charset=x\r\n" + X, "the server sent a web page"),
        (OK + b"Content-Encoding: gzip\r\n" + X, r"sent the file in the coding gzip"),
        (OK + b"\r\nx", "did not send the length"),
        (OK + b"Content-Length: x\r\n\r\nx", "did not send the length"),
        (OK + b"Content-Length: 0\r\n\r\n", "the server sent an empty file"),
        (CHUNKED + b"0\r\n\r\n", "the server sent an empty file"),
        (CHUNKED + b"3\r\nabc\r\n", "ProtocolError"),
        (b"x", "BadStatusLine"),
    ],
)
def test_answers_that_are_not_the_file(server, answer, reason):
    server.raw = answer
    assert len(refuse(rf"file\.tgz: .*{reason}", server)) < 700


def test_answers_that_are_the_file(server):
    server.raw = CHUNKED + b"1\r\nx\r\n0\r\n\r\n"  # it has an end of its own
    assert get(server) == b"x"
    server.raw = OK + b"Content-Type: text/html\r\n" + X
    assert get(server, name="page.html") == b"x"
    server.raw = OK + b"Content-Encoding: gzip\r\n\r\nx"
    assert get(server, name="b", sha256=hashlib.sha256(b"x").hexdigest()) == b"x"


@pytest.mark.parametrize(
    ("limit", "value", "pause", "reason"),
    [
        ("SILENCE", 0.1, 1, "timed out"),
        ("PATIENCE", 0.05, 0.005, "too slow: fewer than 10000 bytes per second"),
    ],
)
def test_a_server_is_not_waited_for_ever(server, monkeypatch, limit, value, pause, reason):
    monkeypatch.setattr(downloads, limit, value)
    monkeypatch.setattr(downloads, "_BLOCK", 10)
    server.raw, server.pause = OK + b"Content-Length: 999\r\n\r\n" + b"a" * 999, pause
    refuse(reason, server)


def test_two_downloads_at_once_are_refused(server):
    with claiming(FILE):
        refuse(r"file\.tgz: another process is writing this file; wait", server)
    assert not server.requests


@pytest.mark.parametrize("path", [PART, SUMS])
def test_a_planted_link_is_not_followed(server, tmp_path, path):
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=f"{path}: is a symbolic link where this command"):
        get(server)
    assert not (tmp_path / "elsewhere").exists()


# ---- mirrors, and checksums of first downloads


def test_mirrors_come_first_in_their_order(server, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        silent = f"http://127.0.0.1:{closed.getsockname()[1]}"
    mirrors = f"no-url {silent} {server.url}/a/  file:///nowhere {(server.folder / 'b').as_uri()}"
    monkeypatch.setenv("SYNCATTN_MIRROR", mirrors)
    path = f"{server.url.removeprefix('http://')}/file.tgz"
    put(server, b"old", f"a/{path}")
    reasons = "no-url/.*; ", f"{silent}/.* refused; ", "/a/.*: 404 Not Found; ", "no such file; "
    refuse(".*".join(reasons), server, "file.tgz.gz?x=1")
    assert [seen.path for seen in server.requests] == [f"/a/{path}.gz", "/file.tgz.gz"]

    assert get(server, sha256=SHA256) == CONTENT  # the mirror has another file
    put(server, CONTENT, f"b/{path}")
    server.requests.clear()
    assert get(server, name="again", sha256=SHA256) == CONTENT
    assert [seen.path for seen in server.requests] == [f"/a/{path}"]


def test_the_first_download_is_trusted_and_no_other(server):
    for _ in range(2):
        assert get(server) == CONTENT and SUMS.read_text() == f"{SHA256}  file.tgz\n"
        FILE.unlink()
    FILE.write_bytes(b"changed here")
    refuse(r"expected [0-9a-f]+ as before \(SHA256SUMS\)", server)
    FILE.unlink()
    put(server, b"changed there")
    refuse(f"expected {SHA256}; the file on the server may", server)
    assert SUMS.read_text() == f"{SHA256}  file.tgz\n"


@pytest.mark.parametrize("line", ["x", "0" * 63 + "  file.tgz", "é" * 64 + "  file.tgz", "0" * 64])
def test_damaged_checksums_are_not_passed_over(server, line):
    SUMS.write_text(f"{SHA256}  file.tgz\n{line}\n", encoding="utf-8")
    refuse("SHA256SUMS:2: expected a SHA-256 and a name", server)
    SUMS.write_text(f"{SHA256.upper()} *file.tgz\n{'0' * 64}  file.tgz\n")
    assert get(server) == CONTENT  # the first line counts
