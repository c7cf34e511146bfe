"""Archives are read as they are, whatever is in them."""

import bz2
import gzip
import io
import stat
import tarfile
import tracemalloc
import zipfile
from functools import partial
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.tests.recipes.packing import packed, special, tar, zipped
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.recipes import archives
from syncattn_lab.recipes.archives import open_member

TEXT = "der alte Mann\nsah ihn — à Paris\n".encode()
NOISE = Random(1).randbytes(300_000)
MEMBERS = {"training/a.de": b"no\n", "training/b.de": TEXT, "noise": NOISE, "last": b""}


KINDS = ["x.tgz", "x.tar.gz", "x.tar.bz2", "x.tar", "x.zip"]


def content(folder: Path, place: str) -> bytes:
    with open_member(folder, place) as stream:
        return stream.read()


# ---- what is found


@pytest.mark.parametrize("outer", KINDS)
def test_members_are_read(tmp_path, outer):
    (tmp_path / outer).write_bytes(packed(outer, MEMBERS))
    for name, expected in MEMBERS.items():
        assert content(tmp_path, f"{outer}!{name}") == expected
    with (
        open_member(tmp_path, f"{outer}!training/b.de") as stream,
        io.TextIOWrapper(stream, encoding="utf-8") as text,
    ):
        assert list(text) == TEXT.decode().splitlines(keepends=True)


def test_a_file_that_is_no_archive_is_read(tmp_path):
    gz = gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:])
    for name, held in {"a.gz": gz, "a.bz2": bz2.compress(TEXT), "a.txt": TEXT}.items():
        (tmp_path / name).write_bytes(held)
        assert content(tmp_path, name) == TEXT


def test_a_tgz_of_several_gzip_streams_is_read_to_its_end(tmp_path):
    whole = tar(MEMBERS)
    (tmp_path / "x.tgz").write_bytes(gzip.compress(whole[:5000]) + gzip.compress(whole[5000:]))
    assert content(tmp_path, "x.tgz!noise") == NOISE


@pytest.mark.parametrize(("held", "sought"), [("./a/b", "a/b"), ("a/b", "./a/b"), ("a/b", "a//b")])
@pytest.mark.parametrize("outer", ["x.tgz", "x.zip"])
def test_a_leading_dot_does_not_matter(tmp_path, outer, held, sought):
    (tmp_path / outer).write_bytes(packed(outer, {held: TEXT}))
    assert content(tmp_path, f"{outer}!{sought}") == TEXT


@pytest.mark.parametrize("inside", ["ASPEC/ASPEC-JE/", "ASPEC-JE/", ""])
@pytest.mark.parametrize("outer", ["x.tgz", "x.zip", "folder"])
def test_leading_folders_may_be_missing(tmp_path, outer, inside):
    """Licensees have it unpacked or packed, from any folder on."""
    members = {"ASPEC-JC/train/train-1.txt": b"no", f"{inside}train/train-1.txt": TEXT}
    if outer == "folder":
        for name, held in members.items():
            (tmp_path / outer / name).parent.mkdir(parents=True)
            (tmp_path / outer / name).write_bytes(held)
    else:
        (tmp_path / outer).write_bytes(packed(outer, members))
    assert content(tmp_path, f"{outer}!ASPEC/ASPEC-JE/train/train-1.txt") == TEXT
    assert "has no " in refused(tmp_path, f"{outer}!ASPEC/ASPEC-JE/dev/train-1.txt")
    assert "has no " in refused(tmp_path, f"{outer}!../{outer}/{inside}train/train-1.txt")


# ---- what is refused


def refused(folder: Path, place: str) -> str:
    """Return why."""
    with pytest.raises(DataError) as caught:
        content(folder, place)
    message = str(caught.value)
    assert message.startswith(str(folder)) and "\n" not in message
    return message


OTHERS = [
    special("/etc/x", tarfile.REGTYPE),
    special("a/../../x", tarfile.REGTYPE),
    special("..", tarfile.DIRTYPE),
    special("a", tarfile.DIRTYPE),
    special("a/link", tarfile.SYMTYPE, "../training/b.de\r\n"),
    special("a/hard", tarfile.LNKTYPE, "/etc/passwd"),
    special("a/pipe", tarfile.FIFOTYPE),
    special("b\u2028é", tarfile.DIRTYPE),
]


def test_other_members_do_no_harm(tmp_path):
    (tmp_path / "x.tgz").write_bytes(tar(MEMBERS, "w:gz", *OTHERS))
    others = {"/x": b"", "a/../../x": b"", "a/link": b"/etc/passwd"}
    (tmp_path / "x.zip").write_bytes(zipped({**others, **MEMBERS}, "a/link"))
    for outer in ("x.tgz", "x.zip"):
        assert content(tmp_path, f"{outer}!training/b.de") == TEXT


def test_what_is_no_file_is_refused(tmp_path):
    (tmp_path / "x.tgz").write_bytes(tar({}, "w:gz", *OTHERS))
    (tmp_path / "x.zip").write_bytes(zipped({"dir/": b"", "dir/link": b"../a"}, "dir/link"))
    (tmp_path / "y.zip").write_bytes(zipped({"pipe": TEXT}, "pipe", kind=stat.S_IFIFO))
    (tmp_path / "x.txt").write_bytes(TEXT)
    members = ("x.tgz!a", "x.tgz!a/pipe", "x.tgz!a/link", "x.tgz!a/hard", "x.zip!dir")
    for place in (*members, "x.zip!dir/link", "y.zip!pipe"):
        name = place.partition("!")[2]
        assert f": {name} is a folder, a link or the like; name a" in refused(tmp_path, place)
    assert "is an archive; name a member: " in refused(tmp_path, "x.tgz")
    assert "x.txt: not the name of an archive (.tar, .tar.gz, " in refused(tmp_path, "x.txt!a")
    assert "y.tgz: no such file; fetch the file first" in refused(tmp_path, "y.tgz!a")
    assert r"b\u2028é" in refused(tmp_path, "x.tgz!b")  # on one line


@pytest.mark.parametrize("outer", ["x.tgz", "x.zip"])
def test_a_missing_member_names_those_near_to_it(tmp_path, outer):
    (tmp_path / outer).write_bytes(packed(outer, MEMBERS))
    message = refused(tmp_path, f"{outer}!b.de")
    assert f"{outer}: has no b.de; most similar: training/b.de, training/a.de" in message
    (tmp_path / outer).write_bytes(packed(outer, {}))
    assert "most similar: nothing" in refused(tmp_path, f"{outer}!b.de")


# ---- bombs


NOTHING = bytes(1 << 20)


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for archives, of which at most 64 kB is unpacked, or twice their size."""
    monkeypatch.setattr(archives, "LEAST", 1 << 16)
    monkeypatch.setattr(archives, "RATIO", 2)
    return tmp_path


@pytest.mark.parametrize("outer", [kind for kind in KINDS if kind != "x.tar"])
@pytest.mark.parametrize("sought", ["bomb", "last"])
def test_what_unpacks_to_far_more_is_refused(limited, outer, sought):
    (limited / outer).write_bytes(packed(outer, {"bomb": NOTHING, "last": TEXT}))
    if outer == "x.zip" and sought == "last":  # nothing before it is unpacked
        assert content(limited, "x.zip!last") == TEXT
        return
    message = refused(limited, f"{outer}!{sought}")
    assert "unpacks to more than 65536 bytes, over 2 times its size; the archive is " in message


def test_a_compressed_file_that_is_a_bomb(limited):
    for name, compress in {"a.gz": gzip.compress, "a.bz2": bz2.compress}.items():
        (limited / name).write_bytes(compress(NOTHING))
        assert "unpacks to more than 65536 bytes" in refused(limited, name)


def test_large_files_that_are_no_bombs(limited):
    for outer in KINDS:
        (limited / outer).write_bytes(packed(outer, MEMBERS))
        assert content(limited, f"{outer}!noise") == NOISE


def test_a_sparse_file_is_as_large_as_it_says(limited):
    info = special("bomb", tarfile.GNUTYPE_SPARSE)
    raw = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    raw[386:410] = b"%011o\0%011o\0" % (0, 0)  # a hole, with nothing in front
    raw[483:495] = b"%011o\0" % (1 << 32)  # its real size
    raw[148:156] = b"%06o\0 " % (sum(raw[:148]) + 8 * 32 + sum(raw[156:]))
    (limited / "x.tar").write_bytes(bytes(raw) + bytes(1024))
    assert "unpacks to more than 65536 bytes" in refused(limited, "x.tar!bomb")
    modern = tarfile.TarInfo("bomb")
    modern.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    modern.size = len(NOTHING)
    raw_map = b"1000000\n" + b"0\n" * (len(NOTHING) // 2)
    held = modern.tobuf(tarfile.PAX_FORMAT) + raw_map[: len(NOTHING)]
    (limited / "x.tar").write_bytes(held)
    assert "is truncated or damaged (a sparse file)" in refused(limited, "x.tar!bomb")


def test_a_name_fills_no_memory(tmp_path):
    """Headers of tar are read whole, and so is what a link in a zip says."""
    long = special("x", tarfile.GNUTYPE_LONGNAME)
    long.size = len(NOTHING)
    (tmp_path / "x.tgz").write_bytes(gzip.compress(long.tobuf() + NOTHING))
    assert "damaged (a header of 1048576 bytes)" in refused(tmp_path, "x.tgz!x")
    (tmp_path / "x.zip").write_bytes(zipped({"link": b"a" * (1 << 25), "b": TEXT}, "link"))
    tracemalloc.start()
    assert content(tmp_path, "x.zip!b") == TEXT
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


def test_what_bzip2_and_lzma_pack_into_a_zip_is_not_unpacked(tmp_path):
    """Python would unpack each block whole, into any amount of memory."""
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(tmp_path / "x.zip", "w", method) as archive:
            archive.writestr("a", TEXT)
        message = refused(tmp_path, "x.zip!a")
        assert "truncated or damaged (a is compressed by an unsupported method" in message


def test_many_members_are_not_kept(tmp_path):
    infos = [special(f"{'x' * 90}{n}", tarfile.DIRTYPE) for n in range(1000)]
    (tmp_path / "x.tgz").write_bytes(tar(MEMBERS, "w:gz", *infos))
    tracemalloc.start()
    assert content(tmp_path, "x.tgz!training/b.de") == TEXT
    assert tracemalloc.get_traced_memory()[1] < 1 << 19
    tracemalloc.stop()


# ---- damage


@pytest.mark.parametrize("outer", KINDS)
def test_what_is_no_whole_archive_is_named(tmp_path, outer):
    whole, page = packed(outer, MEMBERS), b"<!DOCTYPE html><title>Moved</title>" * 99
    for held in (b"", page, *(whole[:size] for size in (300, 100_000, 250_000))):
        (tmp_path / outer).write_bytes(held)
        message = refused(tmp_path, f"{outer}!noise")
        assert (
            f"{outer}: the file is truncated or damaged (" in message
            and "fetch it again" in message
        )
    (tmp_path / "x.gz").write_bytes(gzip.compress(TEXT)[:-4])
    assert "/x.gz: the file is truncated" in refused(tmp_path, "x.gz")


@given(st.sampled_from(KINDS), st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damage_is_one_line(tmp_path, outer, data):
    damaged = bytearray(packed(outer, {"a": TEXT, "b": TEXT * 9}))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / outer).write_bytes(damaged)
    try:
        content(tmp_path, f"{outer}!b")
    except DataError as error:
        assert str(error).startswith(str(tmp_path / outer)) and "\n" not in str(error)


def test_what_the_system_refuses_is_not_damage(tmp_path, monkeypatch):
    (tmp_path / "x.gz").mkdir()
    with pytest.raises(IsADirectoryError, match=r"x\.gz"):
        content(tmp_path, "x.gz")
    # The first is written when the file is closed, the other at once.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    full_disk = partial(open, "/dev/full", "r+b")
    monkeypatch.setattr("syncattn_lab.recipes.archives.TemporaryFile", full_disk)
    for size in (3, len(NOISE)):
        (tmp_path / "noise").write_bytes(NOISE[:size])
        with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}'"):
            content(tmp_path, "noise")


def test_faults_of_the_reader_are_its_own(tmp_path):
    (tmp_path / "x.tgz").write_bytes(packed("x.tgz", MEMBERS))
    with pytest.raises(OSError, match="my disk is full"), open_member(tmp_path, "x.tgz!noise"):
        raise OSError("my disk is full")
