import bz2
import gzip
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.inputs import keeping_pipes
from syncattn_fairseq.base.text import count_lines, find_text, is_plain, read_lines

TEXT = "der Hund\n\nläuft\n"
LINES = ["der Hund", "", "läuft"]
BOM = b"\xef\xbb\xbf"
KINDS = {
    "plain": TEXT.encode(),
    "marked": BOM + TEXT.encode(),
    "gzip": gzip.compress(TEXT.encode()),
    "bzip2": bz2.compress(TEXT.encode()),
    "both": gzip.compress(BOM + TEXT.encode()),
}


@contextmanager
def fifo(path: Path, content: bytes) -> Iterator[Path]:
    """A named pipe; it gives its contents to whoever opens it first."""
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    yield path
    writer.join()


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_what_it_holds(tmp_path, kind):
    path = tmp_path / "text"  # whatever its name
    path.write_bytes(KINDS[kind])
    assert list(read_lines(path)) == LINES
    assert count_lines(path) == 3
    assert is_plain(path) == (kind == "plain")


def test_a_mark_elsewhere_is_text(tmp_path):
    (tmp_path / "text").write_bytes(BOM + BOM + b"a\n" + BOM + b"b\n")
    assert list(read_lines(tmp_path / "text")) == ["\ufeffa", "\ufeffb"]


EMPTY = {"gzip": gzip.compress(b"", mtime=0), "bzip2": bz2.compress(b""), "bytes": b"", "mark": BOM}


@pytest.mark.parametrize("content", EMPTY.values(), ids=EMPTY)
def test_nothing_is_nothing(tmp_path, content):
    (tmp_path / "text").write_bytes(content)
    assert list(read_lines(tmp_path / "text")) == []


def test_text_that_only_begins_like_bzip2_is_text(tmp_path):
    (tmp_path / "text").write_text("BZh91 is a word\n")
    assert list(read_lines(tmp_path / "text")) == ["BZh91 is a word"]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_a_damaged_compressed_file_is_one_line(tmp_path, compress):
    data = compress(Random(1).randbytes(999).hex().encode())
    places = 12, len(data) - 6  # of gzip, in the codes and in the checksum
    flipped = [data[:n] + bytes([data[n] ^ 255]) + data[n + 1 :] for n in places]
    for damaged in (data[:-9], *flipped):
        (tmp_path / "text").write_bytes(damaged)
        with pytest.raises(DataError, match="text: not a complete compressed file"):
            list(read_lines(tmp_path / "text"))


def test_a_compressed_file_is_found(tmp_path):
    path = tmp_path / "train.heads.en"
    assert find_text(path) == path
    for name in ("train.heads.en.bz2", "train.heads.en.gz", "train.heads.en"):
        (tmp_path / name).touch()
        assert find_text(path) == tmp_path / name


# ---- pipes


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipe_can_be_read_again(tmp_path, kind):
    with fifo(tmp_path / "pipe", KINDS[kind]) as pipe, keeping_pipes():
        with closing(read_lines(pipe)) as lines:
            assert next(lines) == LINES[0]
        assert count_lines(pipe) == 3
        assert list(read_lines(pipe)) == list(read_lines(str(pipe))) == LINES


def test_readers_of_a_pipe_do_not_take_from_each_other(tmp_path):
    numbers = [str(number) for number in range(100_000)]  # larger than all buffers
    content = "".join(f"{number}\n" for number in numbers).encode()
    with fifo(tmp_path / "pipe", content) as pipe, keeping_pipes():
        for one, other in zip(read_lines(pipe), read_lines(pipe), strict=True):
            assert one == other
        assert list(read_lines(pipe)) == numbers


def test_what_comes_later_does_not_wait_for_the_end():
    reader, writer = os.pipe()
    with keeping_pipes():
        lines = read_lines(f"/dev/fd/{reader}")
        os.write(writer, b"first\n")
        assert next(lines) == "first"
        os.write(writer, b"second\n")
        assert next(lines) == "second"
        os.close(writer)
        assert list(lines) == []
    os.close(reader)


def test_pipes_are_forgotten(tmp_path):
    for content in (b"a\n", b"b\n"):
        with fifo(tmp_path / "pipe", content) as pipe, keeping_pipes():
            assert list(read_lines(pipe)) == list(read_lines(pipe)) == [content.decode().strip()]
            with keeping_pipes():
                pass
            assert list(read_lines(pipe)) == [content.decode().strip()]
        pipe.unlink()


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    full = SimpleNamespace(seek=lambda _: 0, read=lambda _: b"", close=lambda: None)
    full.write = open("/dev/full", "wb", buffering=0).write  # noqa: SIM115
    monkeypatch.setattr("syncattn_fairseq.base.inputs.TemporaryFile", lambda: full)
    process = subprocess.Popen(["echo", "a"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with keeping_pipes(), pytest.raises(OSError, match="No space left on device: '/"):
        list(read_lines(f"/dev/fd/{process.stdout.fileno()}"))
    process.wait()
    process.stdout.close()
