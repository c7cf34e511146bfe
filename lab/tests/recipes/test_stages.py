import subprocess
from pathlib import Path

import pytest
from fairseq.options import get_generation_parser
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_lab.recipes.stages import (
    Stage,
    Step,
    command,
    link_stages,
    list_files,
    options,
    read_pipeline,
    split_commands,
    split_words,
)

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


def test_a_step_is_shown_as_a_line_of_bash():
    step = read_pipeline("kytea -out tok | sed 's/ | / /'", Path("a b"), Path("out"))
    assert step.commands == (("kytea", "-out", "tok"), ("sed", "s/ | / /"))
    assert str(step) == "kytea -out tok < 'a b' | sed 's/ | / /' > out"
    assert str(Step((("a", "$(b)"),))) == "a '$(b)'"
    assert str(command("a").into(Path("b"))) == "a > b"


def test_keywords_are_options():
    paths = {"system": [["a", Path("x")], ["b", Path("y"), 1]], "input": [Path("z"), "w"]}
    step = command("score", "all", **paths, by_length=True, one_based=False, size=3)
    words = "score all --system a x --system b y 1 --input z w --by-length --size 3"
    assert step.commands == (tuple(words.split()),)
    left_out = command("score", name=None, labels=[], workers=0, last=-1)
    assert str(left_out.adding("--workers", "2")) == "score --workers 0 --last=-1 --workers 2"


def test_a_step_declares_what_it_reads_and_makes():
    step = read_pipeline("cat", Path("a"), Path("b")).declare([Path("c")], makes=[Path("d")])
    assert step.reads == (Path("a"), Path("c")) and step.makes == (Path("b"), Path("d"))


def stage(name: str, *steps: Step) -> Stage:
    return Stage(name, Path("logs", name), [*steps])


def test_a_stage_is_after_those_that_make_what_it_reads():
    first, other = Path("x/a.en"), Path("x/b*.pt")
    early = stage("early", command("e").declare(makes=[first, other]))
    copying = command("c").declare([first], [Path("y/a.en")])
    late = stage("late", copying, command("d").declare([Path("y/a.en"), Path("x/b1.pt")]))
    assert late.reads == [first, Path("x/b1.pt")], "not what it has made before"
    assert late.makes == [Path("y/a.en")]
    again = stage("again", command("f").declare([Path("x/b[0-9].pt"), Path("z/a.en")]))
    unread = stage("unread", command("g").declare([Path("a.en"), Path("x/c.pt")]))
    logs = {one.name: one.after for one in link_stages([early, late, again, unread])}
    assert logs == {"early": (), "late": (early.log,), "again": (early.log,), "unread": ()}
    [linked] = link_stages([again], [early, late])
    assert linked.after == (early.log,)


def test_files_that_are_declared_are_found(tmp_path):
    (tmp_path / "x").mkdir()
    for name in ("a[1].txt", "a1.txt", "b.txt", "c.log"):
        (tmp_path / "x" / name).touch()
    assert list_files(tmp_path, [Path("x/a[1].txt"), Path("y/a.txt")]) == [Path("x/a[1].txt")]
    found = list_files(tmp_path, [Path("x/?.txt"), Path("x/b.txt"), Path("x/a[1-3].*")])
    assert found == [Path("x/a1.txt"), Path("x/b.txt")]
    assert list_files(tmp_path, [tmp_path / "x" / "c.log"]) == [tmp_path / "x" / "c.log"]


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_a_shell_reads_back_every_word(words):
    shown = str(command("printf", "%s\\0", *words))
    done = subprocess.run(["bash", "-c", shown], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == words


def test_words():
    assert split_words("--model \"a b\" '--x=y | z' #") == ["--model", "a b", "--x=y | z", "#"]
    assert split_words("") == []
    for bad in ("a 'b", "a |", "| b", "a | | b"):
        with pytest.raises(DataError, match="quotation|missing next to"):
            split_commands(bad)


def test_options():
    given = {"one_two": 3, "flag": True, "off": False, "many": [1, 2]}
    assert list(options(given)) == ["--one-two", "3", "--flag", "--many", "1,2"]
    # A value is no option of its own.
    given = {"remove_bpe": "--user-dir=x", "lenpen": -1, "many": ["--a", "b"]}
    words = list(options(given))
    assert words == ["--remove-bpe=--user-dir=x", "--lenpen=-1", "--many=--a,b"]
    parsed = get_generation_parser().parse_args(words[:2])
    assert (parsed.user_dir, parsed.post_process, parsed.lenpen) == (None, "--user-dir=x", -1)
