import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from syncattn_fairseq import __version__
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.locks import locked
from syncattn_lab.recipes import display
from syncattn_lab.recipes.display import Display, duration
from syncattn_lab.recipes.processes import Processes, _terminal
from syncattn_lab.recipes.run import SMALL, Runner, list_missing_programs, select_stages
from syncattn_lab.recipes.stages import Stage, Step, command, read_pipeline, run_module

LOGS = Path("logs")


def bash(script: str) -> Step:
    return command("bash", "-c", script)


def stage(name: str, *steps: Step, **more: Any) -> Stage:
    return Stage(name, LOGS / name, list(steps), title=name, **more)


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with Processes() as processes:
        yield Runner(tmp_path, processes, Display(), provenance={"commit": "1"})


def again(runner: Runner) -> Runner:
    return Runner(runner.work, runner.processes, runner.display, again=True)


STAGES = [stage("one"), stage("two"), stage("two"), stage("three")]


def test_select():
    def names(first: str | None, last: str | None) -> list[str]:
        return [stage.name for stage in select_stages(STAGES, first, last)]

    assert names(None, None) == ["one", "two", "two", "three"]
    assert names("two", None) == ["two", "two", "three"]
    assert names("two", "two") == ["two", "two"]
    with pytest.raises(DataError, match="no stage 'four'; choose from one, two, three"):
        select_stages(STAGES, None, "four")
    with pytest.raises(DataError, match="--from three comes after --to one"):
        select_stages(STAGES, "three", "one")


def test_a_stage_is_done_once(runner):
    work = runner.work
    stages = [stage("a", bash("echo new >> a"))]
    runner.run(stages)
    runner.run(stages)
    assert (work / "a").read_text() == "new\n"
    assert json.loads((work / "logs/a.done").read_text())["commit"] == "1"
    again(runner).run(stages)
    assert (work / "a").read_text() == "new\n" * 2


def test_other_settings_are_noticed(runner):
    runner.run([stage("a", bash("true"), settings={"x": 1, "y": [2]})])
    runner.run([stage("a", bash("false"), settings={"x": 1, "y": [2]})])
    with pytest.raises(DataError, match=r"a: done before with other settings: x was 1, is 2; "):
        runner.run([stage("a", bash("true"), settings={"x": 2, "y": [2]})])
    again(runner).run([stage("a", bash("true"), settings={"x": 2, "y": [2]})])
    runner.run([stage("a", bash("false"), settings={"x": 2, "y": [2]})])


def training(limit: object, rate: int = 1, *, fails: bool = False) -> Stage:
    """Return a stage that adds a line to a file whenever it runs, as trainings add updates."""
    script = f"echo {rate} {limit} >> logs/made; {'false' if fails else 'true'}"
    settings = {"limit": limit, "rate": rate}
    more = {"resumes": True, "limits": ("limit",), "after": (LOGS / "data",)}
    step = bash(script).declare(makes=[LOGS / "mad*"])
    return stage("train", step, settings=settings, **more)


DECODING = stage("decode", bash("true"), after=(LOGS / "train",))


def test_a_training_continues_if_its_limit_has_grown(runner):
    made = runner.work / "logs/made"
    runner.run([training(2), DECODING])
    runner.run([training(2)])
    assert made.read_text() == "1 2\n" and runner.is_done(DECODING)
    runner.run([training(4)])
    assert made.read_text() == "1 2\n1 4\n" and not runner.is_done(DECODING)
    with pytest.raises(DataError, match="train: done before with other settings: limit was 4, is"):
        runner.run([training(3)])
    runner.run([training(0)])  # no limit
    with pytest.raises(DataError, match="limit was 0, is None"):
        runner.run([training(None)])
    with pytest.raises(DataError, match="limit was 0, is 4"):
        runner.run([training(4)])
    assert made.read_text() == "1 2\n1 4\n1 0\n"


def test_a_training_that_is_done_again_starts_over(runner):
    made = runner.work / "logs/made"
    for rate in (1, 1, 2):
        again(runner).run([training(2, rate)])
        assert made.read_text() == f"{rate} 2\n"
        assert (runner.work / "logs/train.log").read_text().count("$ bash") == 1
    with pytest.raises(DataError, match=r"rate was 2, is 1; .*--from train to start over"):
        runner.run([training(3, 1)])
    assert made.read_text() == "2 2\n"


def test_an_interrupted_training_continues_only_with_the_same_settings(runner):
    made = runner.work / "logs/made"
    for interrupted in (runner, again(runner), runner):
        with pytest.raises(DataError, match="a command failed"):
            interrupted.run([training(2, fails=True)])
    assert made.read_text() == "1 2\n" * 3
    with pytest.raises(DataError, match="train: begun before with other settings: rate was 1, is"):
        runner.run([training(2, 2)])
    runner.run([training(3)])
    assert made.read_text() == "1 2\n" * 3 + "1 3\n"
    with pytest.raises(DataError, match="a command failed"):
        again(runner).run([training(3, 1, fails=True)])
    again(runner).run([training(3, 2)])
    assert made.read_text() == "2 3\n"


@pytest.mark.parametrize("right", [None, 0, 3, 0.5, "abd"])
@pytest.mark.parametrize("wrong", ["abc", [3], {"a": 1}])
def test_a_limit_that_is_no_number_never_continues(runner, wrong, right):
    with pytest.raises(DataError, match="a command failed"):
        runner.run([training(wrong, fails=True)])
    with pytest.raises(DataError, match="begun before with other settings: limit was "):
        runner.run([training(right)])
    again(runner).run([training(right)])
    assert (runner.work / "logs/made").read_text() == f"1 {right}\n"
    with pytest.raises(DataError, match="done before with other settings: limit was "):
        runner.run([training(wrong)])


def test_a_damaged_note_of_a_finished_stage_is_named(runner):
    runner.run([stage("a", bash("true"), settings={"x": 1})])
    [done] = runner.work.rglob("a.done")
    wrong = (
        '{"after": {}, "files": {"x": 1}}',
        '{"after": {}, "read": {"x": []}}',
        '{"settings": [1]}',
        '{"settings": "x"}',
        '{"after": [1]}',
        '{"after": null}',
    )
    for text in ("", "[" * 100_000, *wrong):
        done.write_text(text)
        with pytest.raises(
            DataError, match=r"a\.done: cannot be read; remove this file to run the stage"
        ):
            runner.run([stage("a", bash("false"), settings={"x": 1})])


def chain(*changed: str) -> list[Stage]:
    """Return four stages; the third reads what the first two make, and the fourth the third."""
    after = {"c": ("a", "b"), "d": ("c",)}
    return [
        stage(
            name, bash(f"echo {name} >> done"), after=tuple(map(LOGS.joinpath, after.get(name, ())))
        )
        for name in changed or "abcd"
    ]


def test_what_reads_what_was_done_again_is_done_again(runner):
    runner.run(chain())
    again(runner).run(chain("b"))
    assert [runner.is_done(one) for one in chain()] == [True, True, False, True]
    runner.run(chain())
    assert (runner.work / "done").read_text().split() == [*"abcdb", *"cd"]
    # Interrupted, and continued by the same command or without --from.
    failing = stage("b", bash("false"))
    with pytest.raises(DataError):
        again(runner).run([*chain("a"), failing])
    runner.run(chain())
    assert (runner.work / "done").read_text().split() == [*"abcdbcd", "a", *"bcd"]


def test_a_training_stops_if_its_data_was_made_again(runner):
    made, data = runner.work / "logs/made", stage("data", bash("true"))
    runner.run([data, training(2)])
    again(runner).run([data])
    for limit in (2, 4):
        with pytest.raises(DataError, match=r"train: done before with data that was made again"):
            runner.run([training(limit)])
    with pytest.raises(DataError, match="a command failed"):
        again(runner).run([training(2, fails=True)])
    again(runner).run([data])
    with pytest.raises(DataError, match=r"train: begun before with data .*--from train to start"):
        runner.run([training(2)])
    again(runner).run([training(2)])
    assert made.read_text() == "1 2\n"
    runner.run([data, training(2)])
    assert made.read_text() == "1 2\n"


@pytest.mark.parametrize("size", [4, SMALL + 1])
def test_a_changed_file_is_refused_before_it_is_used(runner, size):
    words = runner.work / "words"
    words.mkdir()
    path = words / "train.en"
    made = bash(f"head -c {size} /dev/zero > words/train.en; echo > words/train.heads.en")
    first = stage("tokenise", made.declare(makes=[Path("words/train.e?")]))
    later = stage("clean", bash("true"), after=(LOGS / "tokenise",))
    runner.run([first])
    (words / "train.heads.en").write_text("was not declared")
    for repeat in (path.touch, lambda: path.write_bytes(bytes(size)), lambda: None):
        repeat()
        assert runner.is_done(first)
    path.write_bytes(b"1" + bytes(size - 1))
    fault = r"words/train\.en: has changed since its stage finished .*tokenise\.done.; put the"
    for stages in ([first], [later]):
        with pytest.raises(DataError, match=fault):
            runner.run(stages)
    again(runner).run([first, later])
    path.unlink()
    assert runner.is_done(first), "who reads it says that it is gone"


@pytest.mark.parametrize("size", [4, SMALL + 1])
def test_a_users_own_text_that_changes_is_refused(runner, tmp_path, size):
    own, other = tmp_path / "mine" / "test.en", tmp_path / "mine" / "train.en"
    own.parent.mkdir()
    own.write_bytes(bytes(size))
    other.write_text("1")
    copying = command("cp", own, "raw").declare([own, other], [Path("raw")])
    collect = stage("collect", copying, settings={"x": 1})
    runner.run([collect])
    mark = runner.work / "logs/collect.done"
    read = json.loads(mark.read_text())["read"]
    status = own.stat()
    assert read.keys() == {str(own), str(other)}
    assert read[str(own)][:2] == [size, status.st_mtime_ns] and len(read[str(own)][2]) == 64
    own.touch()
    assert runner.is_done(collect), "its content is the same"
    own.write_bytes(b"1" + bytes(size - 1))
    with pytest.raises(
        DataError, match=rf"^{own}: has changed since the recipe read this file .*--from collect$"
    ):
        runner.run([collect])
    own.write_bytes(bytes(size))
    assert runner.is_done(collect)
    own.write_bytes(b"1" + bytes(size - 1))
    again(runner).run([collect])
    assert runner.is_done(collect) and (runner.work / "raw").read_bytes()[:1] == b"1"
    own.unlink()
    assert runner.is_done(collect), "what was made of it is here"
    mark.write_text(
        json.dumps({k: v for k, v in json.loads(mark.read_text()).items() if k != "read"})
    )
    assert runner.is_done(collect), "as of an earlier version"


def test_what_this_run_has_finished_is_not_done_twice(runner):
    repeated = again(runner)
    repeated.run([training(2), DECODING])
    repeated.run([training(2), DECODING])
    assert (runner.work / "logs/made").read_text() == "1 2\n"


def test_what_fails_stops_and_is_done_again(runner):
    script = "echo ValueError: because; echo try --help; test -e mended"
    stages = [stage("a", bash(script), command("touch", "after"))]
    stages.append(stage("b", command("touch", "never")))
    said = r"a: a command failed \(status 1\): ValueError: because .*logs/a\.log"
    with pytest.raises(DataError, match=said):  # not the last line
        runner.run(stages)
    work = runner.work
    assert not (work / "after").exists() and not (work / "never").exists()
    log = (work / "logs" / "a.log").read_text()
    assert log == f"$ bash -c '{script}'\nValueError: because\ntry --help\n"
    (work / "mended").touch()
    runner.run(stages)
    assert (work / "after").exists() and (work / "never").exists()


def test_written_whole_or_not_at_all(runner):
    (runner.work / "in").write_text("b\na\n")
    runner.run([stage("a", read_pipeline("sort | tr ab xy", Path("in"), Path("out")))])
    assert (runner.work / "out").read_text() == "x\ny\n"
    half = replace(bash("echo half; false"), output=Path("bad"))
    pipe = read_pipeline("bash -c 'cat; exit 3' | cat", Path("in"), Path("bad"))
    for step, status in ((half, 1), (pipe, 3)):
        with pytest.raises(DataError, match=f"status {status}"):
            runner.run([stage("b", step)])
    assert sorted(p.name for p in runner.work.iterdir()) == ["in", "logs", "out"]


def test_environments(runner):
    runner.run([stage("a", bash("echo $A $B > out"))], environment={"A": "given", "B": "own"})
    assert (runner.work / "out").read_text() == "given own\n"


def test_our_modules_are_run_by_the_python_that_runs_the_recipe(runner, tmp_path, monkeypatch):
    other = tmp_path / "other" / "python"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent), prepend=os.pathsep)
    runner.run([stage("a", run_module("fetch", "--version").into(Path("out")))])
    said = "python -m syncattn_lab.recipes.fetch"
    assert (runner.work / "out").read_text() == f"{said} {__version__}\n"
    assert (runner.work / "logs/a.log").read_text().startswith(f"$ {said} --version")
    with pytest.raises(DataError, match="status 1"):  # a program of the user's
        runner.run([stage("b", command("python -m", "sacremoses"))])


def test_states_of_a_progress_bar_are_told_but_not_logged(tmp_path):
    told: list[str] = []
    script = r"printf 'one\n\r 10%%\r 20%%'; sleep 0.3; printf '\r100%%\ntwo'"
    with Processes() as processes, (tmp_path / "log").open("wb") as log:
        processes.run(bash(script), tmp_path, log, told.append, {})
    assert (tmp_path / "log").read_text() == "one\n100%\ntwo\n"
    assert told == ["one", " 20%", "100%", "two"]


def test_what_is_missing_is_said_before_anything_is_run(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    ours = [command("syncattn-parse"), run_module("fetch")]  # beside our Python, and it itself
    missing = list_missing_programs(
        [stage("a", command("kytea")), stage("b", *ours, programs=("eda",))]
    )
    assert {*missing} == {"kytea", "eda"}
    assert missing["kytea"].startswith("no such program; install KyTea, http://")


# ---- what is shown

LINES = {
    "simple": "epoch 002: 100 / 300 loss=4.1, num_updates={}, lr=0.002",
    "json": '{{"loss": "4.1", "num_updates": "{}", "lr": "0.002"}}',
}


@pytest.mark.parametrize("text", LINES.values(), ids=LINES)
def test_a_training_says_in_a_log_how_far_it_is(text, monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr(display.time, "monotonic", lambda: now)
    with Display().stage("dbsa: train", 850) as show:
        for now in range(0, 70, 10):
            show(text.format(5 * now))
            show("something else")
    assert capsys.readouterr().out.splitlines() == [
        "== dbsa: train",
        "   dbsa: train: 150 of 850 updates",
        "   dbsa: train: 300 of 850 updates",
        "== dbsa: train: done in 1 min 0 s",
    ]


def test_other_stages_say_nothing_in_a_log(monkeypatch, capsys):
    monkeypatch.setattr(display, "REPORT_EVERY", 0)
    with Display().stage("binarise", None) as show:
        show("num_updates=3")
    assert capsys.readouterr().out.splitlines() == ["== binarise", "== binarise: done in 0 s"]


@pytest.mark.parametrize("seconds, text", [(59.4, "59 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")])
def test_duration(seconds, text):
    assert duration(seconds) == text


# ---- kills and locks

RECIPE = """
import sys
from pathlib import Path
from syncattn_fairseq.base.locks import locked
from syncattn_lab.recipes.display import Display
from syncattn_lab.recipes.processes import Processes
from syncattn_lab.recipes.run import Runner
from syncattn_lab.recipes.stages import Stage, command
work = Path(sys.argv[1])
script = "echo $$ > id; sleep 60 & echo $! > child; wait"
with Processes() as processes, locked(work / "lock", lambda: None) as lock:
    stage = Stage("a", Path("logs/a"), [command("bash", "-c", script)], title="a")
    Runner(work, processes, Display()).run([stage], [lock])
"""


def alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_recipe_leaves_nothing_running(tmp_path, number):
    recipe = subprocess.Popen(
        [sys.executable, "-c", RECIPE, str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    ids = [int((tmp_path / name).read_text()) for name in ("id", "child")]
    assert all(map(alive, ids))
    recipe.send_signal(number)
    recipe.wait()
    with locked(tmp_path / "lock", lambda: None):  # it is free when they have ended
        wait_for(lambda: not any(map(alive, ids)))
    assert not (tmp_path / "logs" / "a.done").exists()


def test_a_terminal_shows_bars_and_a_line_for_each_stage(tmp_path):
    program = RECIPE.replace('"echo $$ > id; sleep 60 & echo $! > child; wait"', "sys.argv[2]")
    program = program.replace('title="a"', 'title="a", updates=20')
    script = "test -t 2 && for n in 5 20; do echo num_updates=$n; sleep 0.3; done"
    ours, theirs = _terminal()
    recipe = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), script], stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:
            break
        shown += block
    os.close(ours)
    assert recipe.wait() == 0
    assert b"20/20" in shown and b"5/20" in shown
    assert b"== a: done in " in shown and b"== a\r" not in shown
