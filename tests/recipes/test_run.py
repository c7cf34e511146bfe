from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.recipes.run import on_terminal, run, select
from syncattn_fairseq.recipes.stages import Stage, line, options, written

LOGS = Path("logs")


def stage(name: str, *commands: str, once: bool = True) -> Stage:
    return Stage(name, LOGS / name, list(commands), once)


STAGES = [stage("one"), stage("two"), stage("two"), stage("three")]


def test_select() -> None:
    def names(first: str | None, last: str | None) -> list[str]:
        return [stage.name for stage in select(STAGES, first, last)]

    assert names(None, None) == ["one", "two", "two", "three"]
    assert names("two", None) == ["two", "two", "three"]
    assert names("two", "two") == ["two", "two"]
    with pytest.raises(DataError, match="no stage 'four'; choose from one, two, three"):
        select(STAGES, None, "four")
    with pytest.raises(DataError, match="--from three comes after --to one"):
        select(STAGES, "three", "one")


def test_a_stage_is_done_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stages = [stage("a", "echo new >> a"), stage("b", "echo new >> b", once=False)]
    run(stages, tmp_path, again=False)
    run(stages, tmp_path, again=False)
    assert (tmp_path / "a").read_text() == "new\n" and (tmp_path / "b").read_text() == "new\n" * 2
    assert "a: done before; --from a does it again" in capfd.readouterr().out
    run(stages, tmp_path, again=True)
    assert (tmp_path / "a").read_text() == "new\n" * 2


def test_what_fails_stops_and_is_done_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stages = [stage("a", "echo said; test -e mended", "touch after"), stage("b", "touch never")]
    with pytest.raises(DataError, match=r"a: a command ended with status 1.*logs/a\.log"):
        run(stages, tmp_path, again=False)
    assert not (tmp_path / "after").exists() and not (tmp_path / "never").exists()
    log = (tmp_path / "logs" / "a.log").read_text()
    assert log == "$ echo said; test -e mended\nsaid\n"
    assert "said" in capfd.readouterr().out
    (tmp_path / "mended").touch()
    run(stages, tmp_path, again=False)
    assert (tmp_path / "after").exists() and (tmp_path / "never").exists()


def test_a_pipe_fails_where_any_of_its_commands_does(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="status 3"):
        run([stage("a", "(exit 3) | cat")], tmp_path, again=False)


def test_written_whole_or_not_at_all(tmp_path: Path) -> None:
    source = Path("in")
    (tmp_path / source).write_text("b\na\n")
    run([stage("a", written(f"sort < {source}", Path("out")))], tmp_path, again=False)
    assert (tmp_path / "out").read_text() == "a\nb\n"
    with pytest.raises(DataError):
        run([stage("b", written("echo half; false", Path("bad")))], tmp_path, again=False)
    assert not (tmp_path / "bad").exists()


def test_on_a_terminal_commands_have_one_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setattr(sys, "stdout", os.fdopen(theirs, "w"))
    with open(tmp_path / "log", "wb") as log:
        assert on_terminal("test -t 1 && test -t 2 && echo seen", tmp_path, log) == 0
        assert on_terminal("exit 3", tmp_path, log) == 3
    assert os.read(ours, 100).strip() == b"seen"
    assert (tmp_path / "log").read_bytes().strip() == b"seen"


def test_lines() -> None:
    assert line("a", Path("b c"), "x!y") == "a 'b c' 'x!y'"
    given = {"one_two": 3, "flag": True, "off": False, "many": [1, 2]}
    assert list(options(given)) == ["--one-two", "3", "--flag", "--many", "1,2"]
