import gzip
from pathlib import Path

import pytest

from lab.tests.recipes.packing import tar
from syncattn_fairseq.base.errors import DataError
from syncattn_lab.recipes import text_formats as texts
from syncattn_lab.recipes.collect import main
from tests.cli.errors import read_error

PLAIN = "plain=x.{language}"
ASPEC = "aspec=y.txt"


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    folder = tmp_path / "archives"
    folder.mkdir()
    for name, text in {"x.ja": "あ\nい\n", "x.en": "a\ni", "y.txt": "0 ||| 本 ||| book\n"}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def collect(archives: Path, *texts: str) -> int:
    output = archives.parent / "new" / "train"
    arguments = ["--archives", str(archives), "--languages", "ja", "en", "--output", str(output)]
    return main([*arguments, *texts])


def test_texts_are_one_behind_the_other(archives, capsys):
    assert collect(archives, PLAIN, ASPEC, PLAIN) == 0
    folder = archives.parent / "new"
    assert (folder / "train.ja").read_text(encoding="utf-8") == "あ\nい\n本\nあ\nい\n"
    assert (folder / "train.en").read_text(encoding="utf-8") == "a\ni\nbook\na\ni\n"
    assert len(list(folder.iterdir())) == 2
    x, y = "2 pairs from x.{language}", "1 pairs from y.txt"
    assert capsys.readouterr().out.splitlines() == [x, y, x]


@pytest.mark.parametrize("first", range(1, 7))
def test_the_first_pairs(archives, first, capsys):
    assert collect(archives, PLAIN, ASPEC, PLAIN, f"--first={first}") == 0
    folder = archives.parent / "new"
    words = ["a", "i", "book", "a", "i"][:first]
    assert (folder / "train.en").read_text(encoding="utf-8").split() == words
    counts = [int(line.split()[0]) for line in capsys.readouterr().out.splitlines()]
    assert counts == [min(2, first), min(1, max(0, first - 2)), min(2, max(0, first - 3))]


def test_a_text_is_missing_even_if_it_is_not_among_the_first_pairs(archives, capsys):
    for first in (1, 2, 3):
        assert collect(archives, PLAIN, "plain=none.{language}", f"--first={first}") == 1
        assert capsys.readouterr().err == (
            f"error: {archives}/none.ja: no such file; fetch the file first, "
            "or put the file there\n"
        )
        assert not list((archives.parent / "new").iterdir())


def test_what_comes_after_the_first_pairs_may_be_wrong(archives):
    (archives / "y.txt").write_text("0 ||| 本 ||| book\nno columns\n", encoding="utf-8")
    assert collect(archives, ASPEC, "--first=1") == 0


def test_pairs_of_nothing_are_kept_if_wanted(archives, capsys):
    (archives / "x.ja").write_text("\nい\n\n", encoding="utf-8")
    (archives / "x.en").write_text("\n\n\n", encoding="utf-8")
    folder = archives.parent / "new"
    for options, kept in (((), "い\n"), (("--keep-empty",), "\nい\n\n")):
        assert collect(archives, PLAIN, *options) == 0
        assert (folder / "train.ja").read_text(encoding="utf-8") == kept
        count = kept.count("\n")
        assert (folder / "train.en").read_text(encoding="utf-8") == "\n" * count
        assert capsys.readouterr().out == f"{count} pairs from x.{{language}}\n"


def test_failure_leaves_what_was_there(archives, capsys):
    assert collect(archives, PLAIN) == 0
    before = {path: path.read_bytes() for path in (archives.parent / "new").iterdir()}
    (archives / "y.txt").write_text("0 ||| 本 ||| book\nno columns\n", encoding="utf-8")
    assert collect(archives, PLAIN, ASPEC) == 1
    assert capsys.readouterr().err.startswith("error: y.txt:2: no |||")
    assert {path: path.read_bytes() for path in (archives.parent / "new").iterdir()} == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["--output", "."],
        ["--output", "/"],
        ["--languages", "../ja", "en"],
        ["--languages", "en", "en"],
    ],
)
def test_outputs_that_are_no_two_files_are_refused(archives, capsys, arguments):
    read_error(capsys, collect(archives, PLAIN, *arguments))
    assert [path.name for path in archives.parent.iterdir()] == ["archives"]


@pytest.mark.parametrize("text", ["plain", "plain=", "csv=x.{language}", "x.{language}"])
def test_bad_arguments_are_named(archives, capsys, text):
    with pytest.raises(SystemExit):
        collect(archives, text)
    error = capsys.readouterr().err
    assert f"{text!r} is not FORMAT=ADDRESS with a FORMAT of plain, latin1, sgm" in error


def test_alignments_come_with_their_pairs(archives, capsys):
    for text, right in (("1-1\n\n2p1 1-2\n\n", True), ("1-1\n", False), ("1-1\n1-1\n1-1", False)):
        (archives / "x.links").write_text(text)
        folder = archives.parent / "new"
        assert collect(archives, PLAIN, "--alignments=x.links") == (0 if right else 1)
        if right:
            assert (folder / "train.align").read_text() == "1-1\n2p1 1-2\n"
        else:
            number = len(text.split())
            assert (
                f"x.links: has {number} lines, but there are 2 pairs of text"
                in capsys.readouterr().err
            )
            assert not list(folder.iterdir())
        for path in folder.iterdir():
            path.unlink()


def test_alignments_are_unpacked_with_a_limit(archives, capsys):
    with gzip.open(archives / "x.links.gz", "wb", compresslevel=1) as file:
        for _ in range(130):
            file.write(bytes(1 << 20))
    assert collect(archives, PLAIN, "--alignments=x.links.gz") == 1
    assert "x.links.gz: unpacks to more than" in capsys.readouterr().err


# ---- pairs out of archives


def pack(archive: Path, members: dict[str, str]) -> None:
    archive.write_bytes(tar({name: text.encode() for name, text in members.items()}, "w:gz"))


def pairs(folder: Path, name: str, place: str) -> list[tuple[str, str]]:
    return list(texts.collect(folder, name, place, ("en", "de")))


def test_roles_name_the_sides_of_a_test_set(tmp_path):
    members = {"test-src.en.sgm": "<seg>s</seg>", "test-ref.de.sgm": "<seg>r</seg>"}
    pack(tmp_path / "t.tgz", {**members, "test-src.de.sgm": "<seg>other way round</seg>"})
    assert pairs(tmp_path, "sgm", "t.tgz!test-{role}.{language}.sgm") == [("s", "r")]


@pytest.mark.parametrize(
    ("name", "english", "german", "message"),
    [
        ("plain", "a\nb\nc\n", "ä\n", "3 in t.tgz!x.en but 1 in t.tgz!x.de"),
        ("plain", "a\n", "ä\n\nü", "1 in t.tgz!x.en but 3 in t.tgz!x.de"),
        ("plain", "", "ä\n", "0 in t.tgz!x.en but 1 in t.tgz!x.de"),
        (
            "plain",
            "",
            "",
            "t.tgz!x.{language}: has no pairs of en and de; check that its format is plain",
        ),
        (
            "sgm",
            "",
            "",
            "t.tgz!x.{language}: has no pairs of en and de; check that its format is sgm",
        ),
        (
            "sgm",
            "<seg>a</seg>\n<seg>",
            "<seg>ä</seg>\n",
            "t.tgz!x.en:2: '<seg>' has no matching tag",
        ),
    ],
)
def test_what_makes_no_pairs_is_named(tmp_path, name, english, german, message):
    pack(tmp_path / "t.tgz", {"x.en": english, "x.de": german})
    with pytest.raises(DataError) as caught:
        pairs(tmp_path, name, "t.tgz!x.{language}")
    assert message in str(caught.value)


def test_one_file_is_not_both_sides(tmp_path):
    (tmp_path / "x").write_text("a\n", encoding="utf-8")
    with pytest.raises(
        DataError, match="^x: names the same file for both sides; put {language} into"
    ):
        pairs(tmp_path, "plain", "x")
