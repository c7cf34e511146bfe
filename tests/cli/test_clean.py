import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.cli.clean import main
from tests.cli.errors import read_error

LANGUAGES = ("en", "de")


def write(prefix: Path, pairs: list[tuple[str, str]]) -> None:
    for language, side in zip(LANGUAGES, zip(*pairs, strict=True), strict=True):
        text = "".join(f"{sentence}\n" for sentence in side)
        Path(f"{prefix}.{language}").write_text(text, encoding="utf-8")


def read(prefix: Path) -> list[tuple[str, ...]]:
    sides = (Path(f"{prefix}.{language}").read_text(encoding="utf-8") for language in LANGUAGES)
    return list(zip(*(side.split("\n")[:-1] for side in sides), strict=True))


def clean(folder: Path, *options: str) -> int:
    arguments = ["--languages", *LANGUAGES, "--input", f"{folder}/in", "--output", f"{folder}/out"]
    return main([*arguments, *options])


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1), st.integers(1, 4))
def test_pairs_are_held_out_after_cleaning(tmp_path_factory, lengths, every):
    folder = tmp_path_factory.mktemp("clean")
    pairs = [(f"s{i} " * a, f"t{i} " * b) for i, (a, b) in enumerate(lengths)]
    write(folder / "in", pairs)
    options = ["--max-words", "2", "--every", str(every), "--held-out", f"{folder}/held"]
    kept = [p for p, (a, b) in zip(pairs, lengths, strict=True) if 0 < a < 3 and 0 < b < 3]
    if len(kept) < every or every == 1:  # none or all would be
        assert clean(folder, *options) == 1 and names(folder) == {"in.en", "in.de"}
        return
    assert clean(folder, *options) == 0
    assert read(folder / "held") == kept[every - 1 :: every]
    assert read(folder / "out") == [p for i, p in enumerate(kept, 1) if i % every]


def test_the_report_counts(tmp_path, capsys):
    pairs = [("a", "b"), ("", "b"), ("a a a", "b b"), ("a\u2028a", "b b"), ("a a", "b b b b")]
    write(tmp_path / "in", pairs)
    options = ["--max-words", "3", "--ratio", "1.5", "--every", "2", "--held-out", f"{tmp_path}/h"]
    assert clean(tmp_path, *options) == 0
    assert capsys.readouterr().out.splitlines() == [
        "5 pairs, 3 kept",
        "1 of them held out",
        "1 left out: a side has no words",
        "1 left out: a side is longer than --max-words",
        "0 left out: a side is more than --ratio times as long as the other",
    ]
    assert read(tmp_path / "out") == [pairs[0], pairs[3]]
    assert read(tmp_path / "h") == [pairs[2]]


def test_pairs_may_be_compressed_and_long(tmp_path):
    pairs = [("a", "b"), ("c " * 1000, "d"), ("a", " ")]  # without limits only words are needed
    write(tmp_path / "in", pairs)
    write(tmp_path / "test", pairs[:1])
    for name in ("in.en", "test.de"):
        path = tmp_path / name
        path.with_name(f"{name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert clean(tmp_path, "--exclude", f"{tmp_path}/test") == 0
    assert read(tmp_path / "out") == pairs[1:2]


def test_failure_leaves_what_was_there(tmp_path, capsys):
    write(tmp_path / "in", [("a", "b"), ("c", "d")])
    (tmp_path / "in.de").write_text("b\n", encoding="utf-8")
    (tmp_path / "out.en").write_text("before", encoding="utf-8")
    before = names(tmp_path)
    error = read_error(capsys, clean(tmp_path))
    assert error.startswith(
        f"error: {tmp_path}/in.de:1: the file has 1 lines, but {tmp_path}/in.en has 2"
    )
    assert names(tmp_path) == before
    assert (tmp_path / "out.en").read_text(encoding="utf-8") == "before"


def test_nothing_is_written_if_no_pair_is_kept(tmp_path, capsys):
    write(tmp_path / "in", [("a b", "c d"), ("", "e"), ("f g", "h i")])
    before = names(tmp_path)
    error = read_error(capsys, clean(tmp_path, "--max-words", "1"))
    fault = "the most frequent cause, 2 pairs: a side is longer than --max-words"
    assert error == f"error: {tmp_path}/in: none of the 3 pairs would be kept; {fault}\n"
    assert names(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--every", "2"], "--held-out needs --every or --last"),
        (["--held-out", "x"], "--held-out needs --every or --last"),
        (
            ["--held-out", "x", "--every", "2", "--last", "1"],
            "--every and --last exclude each other",
        ),
        (["--max-words", "0"], "argument --max-words: 0 is less than 1"),
        (["--ratio", "0.5"], "argument --ratio: 0.5 is less than 1"),
        (["--ratio", "nan"], "argument --ratio: nan is less than 1"),
    ],
)
def test_bad_arguments_are_named(tmp_path, capsys, options, message):
    with pytest.raises(SystemExit):
        clean(tmp_path, *options)
    assert message in capsys.readouterr().err


def test_the_mark_of_subwords_is_replaced_and_counted(tmp_path, capsys):
    write(tmp_path / "in", [("a\u2581b \u2581", "c"), ("d", "e\u2581"), ("f", "g")])
    assert clean(tmp_path) == 0
    assert read(tmp_path / "out") == [("a_b _", "c"), ("d", "e_"), ("f", "g")]
    assert capsys.readouterr().out.splitlines()[-1] == "2 contained U+2581, which is now _"


@pytest.mark.parametrize("languages", [("en", "en"), ("../en", "de")])
def test_languages_that_name_no_two_files_are_refused(tmp_path, languages, capsys):
    error = read_error(capsys, clean(tmp_path, "--languages", *languages))
    assert error.startswith("error: languages {} and {}: give two".format(*languages))
    assert not names(tmp_path)


@pytest.mark.parametrize("option", ["--input", "--output", "--held-out", "--exclude"])
@pytest.mark.parametrize("folder", [".", "..", "/", "", "new/.."])
def test_a_prefix_is_not_a_folder(tmp_path, option, folder, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in", [("a", "b"), ("c", "d")])
    options = ["--every", "2", "--held-out", "held"] if option != "--held-out" else ["--every", "2"]
    before = names(tmp_path)
    error = read_error(capsys, clean(tmp_path, *options, option, folder))
    assert error.startswith(f"error: {Path(folder)}: is a folder; give ")
    assert names(tmp_path) == before


def test_the_last_pairs_are_held_out_before_cleaning(tmp_path, capsys):
    pairs = [("a", "b"), ("", "c"), ("d", "e"), ("f", ""), ("g", "h")]
    write(tmp_path / "in", pairs)
    options = ["--held-out", f"{tmp_path}/held", "--last"]
    assert clean(tmp_path, *options, "3") == 0
    assert read(tmp_path / "out") == pairs[:1] and read(tmp_path / "held") == [pairs[2], pairs[4]]
    assert capsys.readouterr().out.splitlines()[:2] == ["5 pairs, 3 kept", "2 of them held out"]
    error = read_error(capsys, clean(tmp_path, *options, "5"))
    assert "would hold out 3 of the 3 pairs that are kept; choose another --last" in error
    error = read_error(capsys, clean(tmp_path, *options[:2], "--every", "4"))
    assert "would hold out 0 of the 3 pairs that are kept; choose another --every" in error


def test_sentences_of_a_test_set_are_left_out_however_they_are_written(tmp_path, capsys):
    write(tmp_path / "in", [("The man 's .", "x"), ("a b", "Y z"), ("a", "b"), ("c", "d")])
    write(tmp_path / "test", [("the man's.", "other"), ("none", "y z"), ("d", "c")])
    assert clean(tmp_path, "--exclude", f"{tmp_path}/test") == 0
    assert read(tmp_path / "out") == [("a", "b"), ("c", "d")]
    assert "2 left out: a side is a sentence of --exclude" in capsys.readouterr().out


def test_words_of_raw_sentences_are_counted_by_language(tmp_path):
    pairs = [
        ("L’eau.", "Water!"),
        ("a,b", "c d e f g h i j"),
        ("ein sehr kurzer Satz.", "猫が好き。"),
    ]
    write(tmp_path / "in", pairs)
    assert clean(tmp_path, "--ratio=2") == 0
    assert read(tmp_path / "out") == [pairs[0]]
    assert clean(tmp_path, "--ratio=2", "--raw") == 0
    assert read(tmp_path / "out") == [pairs[0], pairs[2]]
    assert clean(tmp_path, "--max-words=4", "--raw") == 0
    assert read(tmp_path / "out") == [pairs[0]]
    for language, other in zip(LANGUAGES, ("fr", "sv"), strict=True):
        text = (tmp_path / f"in.{language}").read_text("utf-8")
        (tmp_path / f"in.{other}").write_text(text, "utf-8")
    # L’ is a word in French.
    paths = [f"--input={tmp_path}/in", f"--output={tmp_path}/out"]
    assert main(["--languages", "fr", "sv", *paths, "--ratio=1", "--raw"]) == 0
    assert (tmp_path / "out.sv").read_text("utf-8") == "猫が好き。\n"


def test_letters_are_counted_and_a_line_says_so_where_a_splitter_is_missing(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("syncattn_fairseq.data.splitters.find_spec", lambda name: None)
    (tmp_path / "in.th").write_text("ฉัน\nฉันเห็นหมา\n", "utf-8")
    (tmp_path / "in.en").write_text("I\nI see a dog\n", "utf-8")
    paths = [f"--input={tmp_path}/in", f"--output={tmp_path}/out"]
    assert main(["--languages", "th", "en", *paths, "--raw", "--max-words=4"]) == 0
    assert (tmp_path / "out.en").read_text("utf-8") == "I\n"
    [note] = capsys.readouterr().err.splitlines()
    assert note.startswith(
        "note: th: each letter of this language counts as a word: pythainlp is needed "
    )
