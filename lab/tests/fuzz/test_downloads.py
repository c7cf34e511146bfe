"""Whatever a server answers: the file as it said, or one line and nothing left."""

import hashlib
from random import Random

from lab.tests.recipes.server import serve
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.recipes import downloads
from syncattn_lab.recipes.downloads import SUMS, fetch
from tests.fuzz.mutation import fuzzed, mutate

ANSWERS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nETag: 'a'\r\nContent-Type: text/plain\r\n\r\nabcdef",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n",
    b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 3-5/6\r\nETag: 'a'\r\n\r\ndef",
    b"HTTP/1.1 302 Found\r\nLocation: other?x\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.0 404 Not found\r\nContent-Encoding: gzip\r\nLast-Modified: today\r\n\r\n",
]
SUM = "0" * 64 + "  other\n" + "1" * 64 + " *another one\n"


def test_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "PAUSE", 0)
    here = tmp_path / "here"
    here.mkdir()
    part = here / ".file.part"
    with serve(tmp_path) as server:

        def check(seed: int) -> None:
            random = Random(seed)
            server.raw = mutate(random.choice(ANSWERS), random)
            if random.random() < 0.5:  # an earlier run has left something
                part.write_bytes(b"abc")
            known = random.choice([None, hashlib.sha256(b"abcdef").hexdigest()])
            try:
                size = fetch(f"{server.url}/file", here, sha256=known).stat().st_size
            except DataError as error:
                assert len(str(error).splitlines()) == 1 and str(error).isprintable()
                assert {*here.iterdir()} <= ({part} if known else set())
            else:
                assert size and {path.name for path in here.iterdir()} - {SUMS} == {"file"}
                assert known or len((here / SUMS).read_text().splitlines()) == 1
            for path in here.iterdir():
                path.unlink()

        fuzzed(check)()


def test_checksums(tmp_path):
    (tmp_path / "file").write_bytes(b"x")

    def check(seed: int) -> None:
        sums = mutate(SUM.encode(), Random(seed))
        (tmp_path / SUMS).write_bytes(sums)
        try:
            fetch("http://127.0.0.1/file", tmp_path)
        except DataError as error:
            assert f"{tmp_path / SUMS}:" in str(error) and len(str(error).splitlines()) == 1
            assert (tmp_path / SUMS).read_bytes() == sums

    fuzzed(check)()
