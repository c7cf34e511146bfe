"""Downloads from a server that misbehaves."""

import fcntl
import hashlib
import os
import re
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.lab.recipes import download, incoming
from syncattn_fairseq.lab.recipes.verified_files import fetch, licensed
from tests.lab.recipes.server import Server, serve

CONTENT = Random(1).randbytes(200_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.delenv("SYNCATTN_MIRROR", raising=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "web" / "data").mkdir(parents=True)
    (tmp_path / "web" / "data" / "file.tgz").write_bytes(CONTENT)
    with serve(tmp_path / "web") as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    return f"{server.url}/data/file.tgz"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "new" / "download"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def stop_after(server: Server, url: str, here: Path, size: int) -> None:
    """Let a first run get so many bytes."""
    server.cuts = [size, 0, 0, 0]
    with pytest.raises(DataError, match=f"the connection broke after {size} of 200000 bytes"):
        fetch(url, here)
    assert names(here) == [".file.tgz.part", ".file.tgz.part.json"]
    assert (here / ".file.tgz.part").read_bytes() == CONTENT[:size]
    assert not server.cuts
    server.requests.clear()


# ---- what is fetched


def test_a_file_is_fetched_once(server, url, here):
    for _ in range(2):
        path = fetch(url, here, sha256=SHA256.upper(), size=len(CONTENT))
        assert path == here / "file.tgz"
        assert path.read_bytes() == CONTENT
    assert names(here) == ["file.tgz"]
    assert server.requests == [("/data/file.tgz", 0, 200, len(CONTENT))]


@pytest.mark.parametrize("lengths", [False, True])
def test_a_server_need_not_tell_length_or_version(server, url, here, lengths):
    server.version, server.lengths = None, lengths
    assert fetch(url, here, sha256=SHA256).read_bytes() == CONTENT


def test_the_name_is_the_last_part_of_the_path(server, here):
    (server.folder / "a b.txt").write_bytes(b"x")
    assert fetch(f"{server.url}/a%20b.txt?download=1", here) == here / "a b.txt"
    assert fetch(f"{server.url}/a%20b.txt", here, name="c") == here / "c"
    assert names(here) == ["SHA256SUMS", "a b.txt", "c"]


@pytest.mark.parametrize(
    "path",
    ["", "/", "/data/", "/..", "/data/%2e%2e", "/a%00b", "/SHA256SUMS"]
    + ["/a%0Ab", "/a%0Db", "/a%E2%80%A8b", "/a%C2%85b"],  # each a line end to some programs
)
def test_a_url_without_a_name_is_refused(here, path):
    with pytest.raises(DataError, match="is not a name for a download; give another") as caught:
        fetch(f"http://127.0.0.1{path}", here)
    assert len(str(caught.value).splitlines()) == 1
    assert names(here) == []


def test_files_of_this_machine_are_copied(server, here):
    source = (server.folder / "data" / "file.tgz").as_uri()
    assert fetch(source, here, sha256=SHA256).read_bytes() == CONTENT


def test_what_is_there_is_kept(server, url, here):
    here.mkdir(parents=True)
    (here / "file.tgz").write_bytes(b"mine")
    assert fetch(url, here, size=4).read_bytes() == b"mine"
    with pytest.raises(DataError, match=r"file\.tgz: has size 4, not 200000; remove it"):
        fetch(url, here, size=len(CONTENT))
    assert (here / "file.tgz").read_bytes() == b"mine" and not server.requests


# ---- what is broken off


def test_the_next_run_asks_for_the_rest(server, url, here):
    stop_after(server, url, here, 70_000)
    assert fetch(url, here, sha256=SHA256).read_bytes() == CONTENT
    assert server.requests == [("/data/file.tgz", 70_000, 206, 130_000)]
    assert names(here) == ["file.tgz"]


@pytest.mark.parametrize(
    ("version", "begin"), [("tag", 70_000), ("date", 70_000), ("weak", 70_000), (None, 0)]
)
def test_a_part_goes_on_only_where_versions_can_be_told(server, url, here, version, begin):
    server.version, server.cuts = version, [70_000]
    assert fetch(url, here, sha256=SHA256).read_bytes() == CONTENT
    assert [seen.begin for seen in server.requests] == [0, begin]


@given(st.lists(st.integers(1, 90_000), max_size=6))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_run_goes_on_as_long_as_bytes_come(server, url, tmp_path_factory, cuts):
    server.cuts, server.requests = list(cuts), []
    here = tmp_path_factory.mktemp("here")
    assert fetch(url, here, sha256=SHA256).read_bytes() == CONTENT
    assert sum(seen.sent for seen in server.requests) == len(CONTENT)


def test_a_silent_connection_is_broken(server, url, here, monkeypatch):
    monkeypatch.setattr(incoming, "SILENCE", 0.2)
    server.cuts, server.hangs = [70_000], True
    assert fetch(url, here, sha256=SHA256).read_bytes() == CONTENT
    assert [seen.begin for seen in server.requests] == [0, 70_000]


def test_another_version_is_fetched_from_its_beginning(server, url, here):
    stop_after(server, url, here, 70_000)
    (server.folder / "data" / "file.tgz").write_bytes(CONTENT[::-1])
    assert fetch(url, here).read_bytes() == CONTENT[::-1]
    assert [seen.status for seen in server.requests] == [200]


@pytest.mark.parametrize("size", [60_000, 150_000])
def test_a_part_of_another_version_is_not_joined(server, url, here, size):
    stop_after(server, url, here, 70_000)
    server.ranges = "always"
    (server.folder / "data" / "file.tgz").write_bytes(CONTENT[::-1][:size])
    with pytest.raises(
        DataError, match="416" if size < 70_000 else "a part of another file than before"
    ):
        fetch(url, here)
    assert names(here) == []
    assert fetch(url, here).read_bytes() == CONTENT[::-1][:size]


@pytest.mark.parametrize("version", ["tag", "date", "weak"])
def test_halves_of_two_versions_are_not_joined(server, url, here, version):
    """The server ignores which version was asked for, and both versions have the same size."""
    server.version = version
    stop_after(server, url, here, 70_000)
    file = server.folder / "data" / "file.tgz"
    file.write_bytes(CONTENT[::-1])
    os.utime(file, (0, 0))
    server.ranges = "always"
    with pytest.raises(DataError, match="a part of another file than before"):
        fetch(url, here)
    assert names(here) == []
    assert fetch(url, here).read_bytes() == CONTENT[::-1]


def test_nothing_is_left_where_nothing_came(server, url, here):
    server.cuts = [0]
    with pytest.raises(DataError, match="broke after 0 of 200000 bytes"):
        fetch(url, here)
    assert not here.exists() and not here.parent.exists()
    here.mkdir(parents=True)
    server.cuts = [0]
    with pytest.raises(DataError, match="broke after 0 of 200000 bytes"):
        fetch(url, here)
    assert names(here) == []


def test_a_server_without_ranges_starts_again(server, url, here):
    server.ranges, server.cuts = False, [70_000]
    assert fetch(url, here, sha256=SHA256).read_bytes() == CONTENT
    assert [seen.begin for seen in server.requests] == [0, 0]


def test_a_server_without_ranges_is_not_asked_for_ever(server, url, here):
    server.ranges, server.cuts = False, [70_000] * 99
    with pytest.raises(DataError, match="run the same command again to continue"):
        fetch(url, here)
    assert len(server.requests) == 4


def test_what_was_not_yet_renamed_is_not_fetched_again(server, url, here):
    stop_after(server, url, here, 70_000)
    (here / ".file.tgz.part").write_bytes(CONTENT)
    assert fetch(url, here, sha256=SHA256).read_bytes() == CONTENT
    assert not server.requests


def test_a_part_that_nothing_is_known_of_is_not_used(server, url, here):
    stop_after(server, url, here, 70_000)
    (here / ".file.tgz.part.json").write_text('["http')
    assert fetch(url, here, sha256=SHA256).read_bytes() == CONTENT
    assert [seen.status for seen in server.requests] == [200]


def test_a_full_disk_is_not_the_fault_of_the_server(server, url, here):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            fetch(url, here)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert fetch(url, here, sha256=SHA256).read_bytes() == CONTENT
    assert [seen.begin for seen in server.requests] == [0, 150_000]


# ---- what is refused


def test_a_wrong_checksum_leaves_nothing(server, url, here):
    with pytest.raises(DataError) as caught:
        fetch(url, here, sha256="0" * 64)
    message = str(caught.value)
    assert "\n" not in message
    for part in (str(here / "file.tgz"), url, SHA256, "0" * 64, "SYNCATTN_MIRROR", "by hand"):
        assert part in message
    assert "run the same command again" not in message
    assert names(here) == []


@pytest.mark.parametrize(("lengths", "sent"), [(True, 1), (False, len(CONTENT))])
def test_a_wrong_size_leaves_nothing(server, url, here, lengths, sent):
    server.lengths, server.cuts = lengths, [sent]  # a length that is told is enough to know
    with pytest.raises(
        DataError, match=r"(size 200000, expected|more than) 199999.*; has it changed there"
    ):
        fetch(url, here, size=199_999)
    assert names(here) == []


@pytest.mark.parametrize("status", [201, 203, 204, 205, 226])
def test_a_status_that_is_not_of_a_file(server, url, here, status):
    server.status = status
    with pytest.raises(DataError, match=f"status {status} in place of the file"):
        fetch(url, here, sha256=SHA256)
    assert names(here) == []


def test_what_cannot_be_checked_is_not_trusted(server, url, here):
    """With a checksum it is; see also the test of servers that do not tell lengths."""
    server.headers = {"Content-Encoding": "gzip"}
    with pytest.raises(DataError, match=r"in another coding \(gzip\), which only a checksum could"):
        fetch(url, here)
    assert names(here) == []
    assert fetch(url, here, sha256=SHA256).read_bytes() == CONTENT
    (here / "file.tgz").unlink()

    server.headers, server.lengths, server.cuts = {}, False, [70_000]
    with pytest.raises(DataError, match="without its length, so that a part of it would pass"):
        fetch(url, here)
    assert names(here) == []
    assert fetch(url, here, size=len(CONTENT)).read_bytes() == CONTENT


@pytest.mark.parametrize("lengths", [True, False])
def test_an_empty_file_is_no_download(server, url, here, lengths):
    (server.folder / "data" / "file.tgz").write_bytes(b"")
    server.lengths = lengths
    with pytest.raises(DataError, match="sent an empty file|sent without its length"):
        fetch(url, here)
    assert names(here) == []
    empty = hashlib.sha256(b"").hexdigest()
    assert fetch(url, here, sha256=empty).read_bytes() == b""
    assert names(here) == ["file.tgz"]


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("length", [b"", b"Content-Length: 1\r\n"])
def test_a_chunked_answer_has_an_end_of_its_own(server, url, here, length):
    server.raw = CHUNKED.replace(b"\r\n\r\n", b"\r\n" + length + b"\r\n") + b"3\r\nabc\r\n"
    with pytest.raises(DataError, match="IncompleteRead"):
        fetch(url, here)
    assert names(here) == []
    server.raw += b"2\r\nde\r\n0\r\n\r\n"
    assert fetch(url, here).read_bytes() == b"abcde"


@pytest.mark.parametrize(
    ("before", "slow"),
    [
        (b"", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 99),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", b"a" * 999),
        (CHUNKED, b"3\r\nabc\r\n0\r\n" + b"trailer: more\r\n" * 99),
    ],
    ids=["headers", "bytes", "trailers"],
)
def test_a_byte_now_and_then_is_not_enough(server, url, here, monkeypatch, before, slow):
    monkeypatch.setattr(incoming, "PATIENCE", 0.1)
    monkeypatch.setattr(incoming, "SLOWEST", 1_000)
    server.raw, server.pause = before + slow, 0.005
    begin = time.monotonic()
    with pytest.raises(DataError, match="too slow: fewer than 1000 bytes per second"):
        fetch(url, here)
    assert time.monotonic() - begin < 3  # all of it would take five seconds
    server.raw = b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n" + b"a" * 30
    monkeypatch.setattr(incoming, "PATIENCE", 9)
    assert fetch(url, here / "again").read_bytes() == b"a" * 30


def test_a_file_has_its_largest_size(server, url, here, monkeypatch):
    monkeypatch.setattr(download, "MOST", len(CONTENT) - 1)
    with pytest.raises(DataError, match="200000 bytes; give its size if that is right"):
        fetch(url, here)
    server.raw = CHUNKED + b"30000\r\n" + b"a" * 0x30000 + b"\r\n" + b"9000\r\n"
    with pytest.raises(DataError, match="more than 199999 bytes"):
        server.raw += b"a" * 0x9000 + b"\r\n0\r\n\r\n"
        fetch(url, here)
    assert names(here) == []
    server.raw = None
    assert fetch(url, here, size=len(CONTENT)).read_bytes() == CONTENT


def test_what_a_server_says_is_one_line(server, url, here):
    server.raw = b"HTTP/1.1 404 \x1b[31mNot\x85 fou\xadnd" + b" x" * 9000 + b"\r\n\r\n"
    with pytest.raises(DataError) as caught:
        fetch(url, here)
    message = str(caught.value)
    assert message.isprintable() and r"404 [31mNot fou\xadnd x" in message and len(message) < 700


def test_a_web_page_is_not_an_archive(server, url, here):
    server.content_type = "text/html; charset=UTF-8"
    with pytest.raises(DataError, match="a web page instead of the file; has it moved"):
        fetch(url, here)
    assert names(here) == []
    assert fetch(url, here, name="page.html").read_bytes() == CONTENT


def test_two_downloads_at_once_are_refused(server, url, here):
    here.mkdir(parents=True)
    with (here / ".file.tgz.part").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(DataError, match="another download of it is running"):
            fetch(url, here)
    assert not server.requests
    assert fetch(url, here).read_bytes() == CONTENT


# ---- mirrors


def put(server: Server, base: str, url: str, content: bytes) -> None:
    file = server.folder / base / url.removeprefix("http://")
    file.parent.mkdir(parents=True)
    file.write_bytes(content)


def test_mirrors_come_first_in_their_order(server, url, here, monkeypatch):
    monkeypatch.setenv("SYNCATTN_MIRROR", f"{server.url}/a {server.url}/b/  {server.url}/c")
    mirrored = url.removeprefix("http:/")
    fetch(f"{url}?x=1", here)
    assert server.paths() == [f"/a{mirrored}", f"/b{mirrored}", f"/c{mirrored}", "/data/file.tgz"]

    put(server, "b", url, CONTENT)
    put(server, "c", url, CONTENT)
    server.requests.clear()
    fetch(f"{url}?x=1", here / "again")
    assert server.paths() == [f"/a{mirrored}", f"/b{mirrored}"]


def test_a_mirror_with_another_file_is_passed_over(server, url, here, monkeypatch):
    monkeypatch.setenv("SYNCATTN_MIRROR", f"{server.url}/a")
    put(server, "a", url, b"old")
    assert fetch(url, here, sha256=SHA256).read_bytes() == CONTENT
    assert fetch(url, here / "again", size=len(CONTENT)).read_bytes() == CONTENT


def test_a_part_is_not_continued_from_another_place(server, url, here, monkeypatch):
    stop_after(server, url, here, 70_000)
    monkeypatch.setenv("SYNCATTN_MIRROR", f"{server.url}/a")
    put(server, "a", url, CONTENT)
    assert fetch(url, here, sha256=SHA256).read_bytes() == CONTENT
    assert [seen.begin for seen in server.requests] == [0]


def test_a_mirror_can_be_a_folder_of_this_machine(server, here, tmp_path, monkeypatch):
    put(server, "a", "http://nowhere.invalid/x/file.tgz", CONTENT)
    monkeypatch.setenv("SYNCATTN_MIRROR", (server.folder / "a").as_uri())
    assert fetch("http://nowhere.invalid/x/file.tgz", here, sha256=SHA256).is_file()


def test_the_error_names_every_place(server, url, here, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        silent = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setenv("SYNCATTN_MIRROR", f"no-url {silent} {server.url}/a file:///nowhere")
    (server.folder / "data" / "file.tgz").unlink()
    with pytest.raises(DataError) as caught:
        fetch(url, here)
    message, place = str(caught.value), re.escape(url.removeprefix("http://"))
    assert message.startswith(f"{here / 'file.tgz'}: ") and "\n" not in message
    reasons = [
        rf"no-url/{place}: unknown url type: .*",
        rf"{silent}/{place}: .*Connection refused",
        rf"{server.url}/a/{place}: 404 Not Found",
        rf"file:///nowhere/{place}: .*No such file .*",
        rf"{re.escape(url)}: 404 Not Found\)",
    ]
    assert re.search("; ".join(reasons), message)
    assert names(here) == []


# ---- what cannot be fetched


def test_a_licensed_file_is_asked_for(here):
    with pytest.raises(DataError) as caught:
        licensed("ASPEC.tar.gz", here, "write to them.")
    assert str(caught.value) == (
        f"{here / 'ASPEC.tar.gz'}: missing; it needs a signed licence, so "
        "put it there yourself: write to them."
    )
    here.mkdir(parents=True)
    (here / "ASPEC.tar.gz").write_bytes(b"x")
    assert licensed("ASPEC.tar.gz", here, "write to them.") == here / "ASPEC.tar.gz"


# ---- what is known of a file


def test_a_file_that_was_there_before_must_be_the_one_that_is_expected(url, here):
    here.mkdir(parents=True)
    (here / "file.tgz").write_bytes(b"something else")
    with pytest.raises(DataError, match=f"has SHA-256 [0-9a-f]+, not {SHA256}; remove it"):
        fetch(url, here, sha256=SHA256)
    with pytest.raises(DataError, match="has MD5 [0-9a-f]+, not 0{32}; remove it"):
        fetch(url, here, md5="0" * 32)
    assert (here / "file.tgz").read_bytes() == b"something else"


def test_a_download_has_its_md5_sum(url, here):
    md5 = hashlib.md5(CONTENT).hexdigest()
    with pytest.raises(DataError, match=f"MD5 {md5}, expected 1{{32}}"):
        fetch(url, here, md5="1" * 32)
    assert fetch(url, here, md5=md5.upper()).read_bytes() == CONTENT
    assert names(here) == ["file.tgz"]


def test_the_first_download_is_trusted_and_no_other(server, url, here, tmp_path):
    path = fetch(url, here)
    assert (here / "SHA256SUMS").read_text() == f"{SHA256}  file.tgz\n"
    path.unlink()
    assert fetch(url, here) == path  # the same again
    path.write_bytes(b"changed here")
    with pytest.raises(DataError, match=r"not [0-9a-f]+ as before \(.*SHA256SUMS\)"):
        fetch(url, here)
    path.unlink()
    (tmp_path / "web" / "data" / "file.tgz").write_bytes(b"changed there")
    with pytest.raises(DataError, match=f"expected {SHA256}; has it changed there"):
        fetch(url, here)
    assert (here / "SHA256SUMS").read_text() == f"{SHA256}  file.tgz\n"
    assert names(here) == ["SHA256SUMS"]


def test_checksums_go_through_no_link(url, here, tmp_path):
    here.mkdir(parents=True)
    (here / "SHA256SUMS").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="SHA256SUMS: a link, in the place of a file of ours"):
        fetch(url, here)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("line", ["x", "0" * 63 + "  file.tgz", "é" * 64 + "  file.tgz", "0" * 64])
def test_damaged_checksums_are_not_passed_over(url, here, line):
    here.mkdir(parents=True)
    (here / "SHA256SUMS").write_text(f"{SHA256}  file.tgz\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match="SHA256SUMS:2: not a SHA-256 and a name"):
        fetch(url, here)
    (here / "SHA256SUMS").write_text(f"{SHA256.upper()} *file.tgz\n{'0' * 64}  file.tgz\n")
    assert fetch(url, here).read_bytes() == CONTENT  # the first line counts


def test_a_pipe_is_not_waited_for(url, here):
    here.mkdir(parents=True)
    os.mkfifo(here / "file.tgz")
    with pytest.raises(DataError, match="not a file; move it away"):
        fetch(url, here)


def test_a_planted_link_is_not_followed(url, here, tmp_path):
    here.mkdir(parents=True)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (here / ".file.tgz.part").symlink_to(victim)
    with pytest.raises(DataError, match="part: this is a link; remove it"):
        fetch(url, here)
    assert victim.read_text() == "mine"


def test_what_is_no_url_is_refused(here):
    with pytest.raises(DataError, match=r"http://\[::1/x: not a URL: Invalid IPv6 URL"):
        fetch("http://[::1/x", here)
