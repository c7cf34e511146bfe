"""Run the stages of a recipe: print, log, skip what is done, stop at what fails."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeAlias

from ..base.errors import DataError
from .stages import Stage

Execute: TypeAlias = Callable[[str, Path, IO[bytes]], int]
"""Runs a line of bash in a folder, copies what it prints to a log, and returns its status."""


def select(stages: Sequence[Stage], first: str | None, last: str | None) -> list[Stage]:
    """Return the stages from one to another, both included.

    Raises:
        DataError: there is no stage of that name, or the first comes after the last.
    """
    names = list(dict.fromkeys(stage.name for stage in stages))
    for name in (first, last):
        if name and name not in names:
            raise DataError(f"no stage {name!r}; choose from {', '.join(names)}")
    start = names.index(first) if first else 0
    end = names.index(last) if last else len(names) - 1
    if start > end:
        raise DataError(f"--from {first} comes after --to {last}; stages: {', '.join(names)}")
    return [stage for stage in stages if start <= names.index(stage.name) <= end]


def run(stages: Sequence[Stage], work: Path, again: bool, execute: Execute | None = None) -> None:
    """Run stages.

    Args:
        stages: in their order.
        work: folder to run in.
        again: whether those that were done before are done again.
        execute: what runs a line; default: bash, with what it prints on the terminal as well.

    Raises:
        DataError: a command failed; it says where its output is.
    """
    for stage in stages:
        done = work / stage.log.with_suffix(".done")
        if stage.once and done.exists() and not again:
            _say(f"{stage.name}: done before; --from {stage.name} does it again")
            continue
        _say(f"{stage.name}, log: {stage.log.with_suffix('.log')}")
        done.parent.mkdir(parents=True, exist_ok=True)
        done.unlink(missing_ok=True)
        with open(work / stage.log.with_suffix(".log"), "wb") as log:
            for command in stage.commands:
                log.write(f"$ {command}\n".encode())
                log.flush()
                print(f"$ {command}", flush=True)
                if status := (execute or on_terminal)(command, work, log):
                    raise DataError(
                        f"{stage.name}: a command ended with status {status}, its output is in "
                        f"{log.name}; mend the cause and run the same command again to go on"
                    )
        done.touch()


def show(stages: Sequence[Stage]) -> None:
    """Print the commands of stages."""
    for stage in stages:
        _say(stage.name)
        for command in stage.commands:
            print(f"$ {command}")


@contextmanager
def alone(work: Path, name: str) -> Iterator[None]:
    """Wait until no other recipe prepares the same corpus, and keep others waiting."""
    path = work / "logs" / name / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"waiting for another recipe that prepares {name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def on_terminal(command: str, work: Path, log: IO[bytes]) -> int:
    """Run a line of bash; see `Execute`. On a terminal its progress bars are shown."""
    shell = ["bash", "-e", "-o", "pipefail", "-c", command]
    if not sys.stdout.isatty():
        with subprocess.Popen(
            shell, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            assert process.stdout is not None
            _copy(process.stdout.fileno(), log)
        return process.returncode
    ours, theirs = pty.openpty()
    with subprocess.Popen(shell, cwd=work, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        _copy(ours, log)
    os.close(ours)
    return process.returncode


def _copy(descriptor: int, log: IO[bytes]) -> None:
    while True:
        try:
            block = os.read(descriptor, 2**16)
        except OSError:  # the end, of a terminal
            return
        if not block:
            return
        sys.stdout.buffer.write(block)
        sys.stdout.flush()
        log.write(block)
        log.flush()


def _say(text: str) -> None:
    print(f"== {text}", flush=True)
