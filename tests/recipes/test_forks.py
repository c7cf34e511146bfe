from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncattn_fairseq.recipes.display import Display
from syncattn_fairseq.recipes.forks import Fork, Forks
from syncattn_fairseq.recipes.processes import Processes
from syncattn_fairseq.recipes.run import Runner
from syncattn_fairseq.recipes.stages import Stage, new_step

BIN = Path(sys.executable).parent


@pytest.fixture
def forks() -> Iterator[Forks]:
    """Forks of a process that imports little, and soon."""
    made = Forks({"FROM_THE_START": "1"}, ["json"])
    yield made
    made.close()


def start(forks: Forks, work: Path, *words: str, **environment: str) -> Fork:
    """Start a command as soon as it is forked."""
    program = str(BIN / words[0])
    deadline = time.monotonic() + 60
    with (work / "output").open("wb") as output:
        files = 0, output.fileno(), output.fileno()
        while not (fork := forks.start(words, program, work, environment, files)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    return fork


def test_a_fork_is_the_command(forks: Forks, tmp_path: Path) -> None:
    sizes = ("--train", "3", "--valid", "2", "--test", "1")
    assert start(forks, tmp_path, "syncattn-corpus", "words", *sizes).wait() == 0
    assert len((tmp_path / "words" / "train.en").read_text().splitlines()) == 3
    assert start(forks, tmp_path, "syncattn-corpus", "--version").wait() == 0
    assert (tmp_path / "output").read_text().startswith("syncattn-corpus ")
    assert start(forks, tmp_path, "syncattn-corpus", "--train", "3").wait() == 2
    assert "required: directory" in (tmp_path / "output").read_text()
    missing = ("syncattn-bpe", "apply", "--model", "nowhere.model", "--input", "nowhere")
    assert start(forks, tmp_path, *missing).wait() == 1
    assert (tmp_path / "output").read_text().startswith("error: ")


def test_other_commands_are_not_forked(forks: Forks, tmp_path: Path) -> None:
    start(forks, tmp_path, "syncattn-corpus", "--version").wait()
    for words, program in (
        (["syncattn-corpus"], str(tmp_path / "syncattn-corpus")),  # of somebody else
        (["syncattn-corpus"], None),
        (["pytest"], str(BIN / "pytest")),
        (["fairseq-train"], str(BIN / "fairseq-train")),
    ):
        assert forks.start(words, program, tmp_path, {}, (0, 1, 2)) is None


def test_commands_start_without_libraries(tmp_path: Path) -> None:
    forks = Forks({}, ["no_such_library"])
    files, words, program = (0, 1, 2), ["syncattn-corpus", "--version"], BIN / "syncattn-corpus"
    for _ in range(20):
        assert forks.start(words, str(program), tmp_path, {}, files) is None
        time.sleep(0.02)
    forks.close()


def test_commands_start_without_a_forking_process_that_was_killed(
    forks: Forks, tmp_path: Path
) -> None:
    start(forks, tmp_path, "syncattn-corpus", "--version").wait()
    assert forks._server is not None
    forks._server.kill()
    forks._server.wait()
    program = str(BIN / "syncattn-corpus")
    for _ in range(2):
        assert forks.start(["syncattn-corpus"], program, tmp_path, {}, (0, 1, 2)) is None


def test_a_killed_fork_has_its_status(forks: Forks, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "text")  # nobody writes to it
    waits = ("syncattn-tokenise", "--lang", "en", "--input", str(tmp_path / "text"))
    fork = start(forks, tmp_path, *waits)
    assert os.getpgid(fork.pid) == fork.pid
    fork.kill()
    assert fork.wait() == 128 + signal.SIGKILL


def test_stages_are_forked_and_logged(
    forks: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(forks, tmp_path, "syncattn-corpus", "--version").wait()
    steps = [new_step("syncattn-corpus", "words", "--train", 3, "--valid", 2, "--test", 1)]
    stage = Stage("a", Path("logs/a"), steps, title="a")
    with Processes(forks) as processes:
        monkeypatch.setattr("subprocess.Popen", None)
        Runner(tmp_path, processes, Display()).run([stage])
    assert (tmp_path / "words" / "test.de").exists()
    assert json.loads((tmp_path / "logs" / "a.done").read_text())["commands"] == [str(steps[0])]
    assert (tmp_path / "logs" / "a.log").read_text().startswith("$ syncattn-corpus words")
