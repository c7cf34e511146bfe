import gzip
import os
import signal
import subprocess
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base import text as door
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_json, replacing
from syncattn_fairseq.base.text import count_lines, read_lines, split_lines
from tests.importing import fork


@given(st.text(st.sampled_from("aé\n\r\u2028\x0b\u200b "), min_size=1, max_size=12))
def test_lines_end_at_line_feeds_alone(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_bytes(content.encode())
    lines = list(read_lines(path))
    assert len(lines) == count_lines(path) == len(content.removesuffix("\n").split("\n"))
    assert list(split_lines(content.encode())) == lines
    assert not {*"\r\x0b"} & {*"".join(lines)}
    words = [line.split() for line in content.removesuffix("\n").split("\n")]
    assert [line.split() for line in lines] == [
        line if {*"".join(line)} - {"\u200b"} else [] for line in words
    ]


def test_a_carriage_return_is_white_space(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"one \r two\r\nthree\r\r\n\xef\xbb\xbf\nfour")
    assert list(read_lines(path)) == ["one   two", "three", "", "four"]


# ---- reading


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MAX_LINE", 10)


def test_a_line_is_bounded(tmp_path, short_lines):
    path = tmp_path / "text"
    path.write_text("012345678\n012345678\n0123456789\n")
    with pytest.raises(DataError, match="text:3: the line has more than 10 characters"):
        list(read_lines(path))


def test_a_gzipped_line_is_bounded_before_it_is_in_memory(tmp_path):
    path = tmp_path / "text.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(600):
            file.write(bytes(2**20))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"text\.gz:1: the line has more than"):
            list(read_lines(path))
        assert tracemalloc.get_traced_memory()[1] < 2**28
    finally:
        tracemalloc.stop()


# ---- writing


def write(path: Path, text: str = "new") -> None:
    with replacing(path) as temporary:
        temporary.write_text(text)


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    write(path)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_modes_are_those_of_new_files_or_of_the_old_one(tmp_path):
    path, other = tmp_path / "out", tmp_path / "other"
    other.touch()
    write(path)
    assert path.stat().st_mode == other.stat().st_mode
    path.chmod(0o600)
    write(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_followed(tmp_path):
    target, link = tmp_path / "folder" / "file", tmp_path / "link"
    target.parent.mkdir()
    link.symlink_to("folder/file")
    for text in ("made", "made again"):
        write(link, text)
        assert link.is_symlink() and target.read_text() == text
    assert list(target.parent.iterdir()) == [target]
    with replacing(link, follow=False) as temporary:
        temporary.write_text("in place of the link")
    assert not link.is_symlink() and link.read_text() == "in place of the link"
    assert target.read_text() == "made again"


def test_what_is_no_file_stays_what_it_is(tmp_path):
    write(Path("/dev/null"))
    assert Path("/dev/null").is_char_device()
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    write(link)
    assert link.is_symlink() and Path("/dev/null").is_char_device()


def test_a_pipe_gets_what_is_written(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    write(pipe)
    assert reader.communicate(timeout=30)[0] == b"new"
    assert pipe.is_fifo()


def test_a_folder_is_not_replaced(tmp_path):
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        write(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(DataError, match=f"^{tmp_path}/no: no such folder; make it first$"):
        write(tmp_path / "no" / "out")
    assert not list(tmp_path.iterdir())


def test_errors_name_the_file_and_not_the_temporary_one(tmp_path):
    path = tmp_path / "j"
    with pytest.raises(FileNotFoundError) as error, replacing(path) as temporary:
        temporary.unlink()
        temporary.read_text()
    assert error.value.filename == str(path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: os.mkfifo(path), "not a regular file"),
        (lambda path: path.write_bytes(b"x" * 11), "has more than 10 bytes"),
        (lambda path: path.write_bytes(b'"\xff"'), "not UTF-8"),
        (lambda path: path.write_text("[" * 9), "not valid JSON"),
    ],
)
def test_a_file_from_others_is_bounded(tmp_path, make, message):
    path = tmp_path / "file"
    make(path)
    with pytest.raises(DataError, match=f"^{path}: {message}"):
        read_json(path, largest=10)


def test_leftovers_of_killed_runs_are_removed(tmp_path):
    path = tmp_path / "out"

    def begin() -> None:
        with replacing(path) as half:
            half.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)

    assert fork(begin) == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1 and not path.exists()
    others = [".other.0123abcd.tmp", ".out.en.0123abcd.tmp", ".out.my.notes.tmp"]
    for name in others:
        (tmp_path / name).touch()
    write(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [*others, "out"]


def test_a_full_disk_names_the_file(tmp_path):
    for path in (Path("/dev/full"), tmp_path / "out"):
        full = pytest.raises(OSError, match=f"No space left on device: '{path}'")
        with full, replacing(path), open("/dev/full", "w") as file:
            file.write("x")
