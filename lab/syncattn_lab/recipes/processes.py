"""Child processes that never outlive the recipe, even if the recipe is killed."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import replacing

from .stages import Step, is_own

#: Size of the terminal that programs write to; without a terminal, they show no progress bars.
_ROWS_AND_COLUMNS = 24, 100

#: A program that reads which process groups run. It kills them when its input closes, which happens
#: when its parent ends, even by kill -9.
_WATCH = """
import os, signal, sys, time
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
def send(number):
    for group in list(groups):
        try:
            os.killpg(group, number)
        except OSError:
            groups.discard(group)
send(signal.SIGTERM)
for _ in range(50):
    send(0)
    if not groups:
        break
    time.sleep(0.1)
send(signal.SIGKILL)
"""


class Failed(Exception):
    """Raised if a command ends with a nonzero exit status."""


class Processes:
    """Starts commands; as a context manager, kills those still running at the end of the block."""

    def __init__(self) -> None:
        self._writing = threading.Lock()

    def __enter__(self) -> Processes:
        self._watch = subprocess.Popen(
            [sys.executable, "-IS", "-c", _WATCH],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,  # only this process handles Ctrl-C
        )
        assert self._watch.stdin is not None
        self._to_watch = self._watch.stdin
        return self

    def __exit__(self, *_: object) -> None:
        with self._writing:
            self._to_watch.close()
        self._watch.wait()

    def _tell(self, sign: str, process: subprocess.Popen[bytes]) -> None:
        with self._writing:
            if not self._to_watch.closed:
                print(sign, process.pid, sep="", file=self._to_watch, flush=True)
            elif sign == "+":  # too late
                process.kill()

    def run(
        self,
        step: Step,
        work: Path,
        log: IO[bytes],
        on_line: Callable[[str], object],
        environment: Mapping[str, str],
        locks: Iterable[int] = (),
    ) -> None:
        """Run the commands of a step in a folder, and wait until they end.

        Args:
            step: the step.
            work: the folder to run in.
            log: receives the printed lines, without intermediate states of progress bars.
            on_line: called with each printed line, and with each state of a progress bar.
            environment: additional environment variables.
            locks: open files that stay locked until the last process ends.

        Raises:
            Failed: a command fails.
            DataError: a program is missing.
        """
        with ExitStack() as whole:
            output = None
            if step.output:
                temporary = whole.enter_context(replacing(work / step.output))
                output = whole.enter_context(temporary.open("wb"))
            # If we run on a terminal, so do they: programs show progress bars only there.
            ours, theirs = _terminal() if sys.stderr.isatty() else os.pipe()
            started: list[subprocess.Popen[bytes]] = []
            shared: dict[str, Any] = {"cwd": work, "stderr": theirs, "start_new_session": True}
            shared |= {"pass_fds": tuple(locks), "env": {**os.environ, **environment}}
            shared["env"]["PATH"] = search_path(shared["env"].get("PATH", ""))
            try:
                with ExitStack() as closing:
                    closing.callback(os.close, theirs)
                    reading = (work / (step.source or os.devnull)).open("rb")
                    source: IO[bytes] = closing.enter_context(reading)
                    for words in step.commands:
                        last = len(started) == len(step.commands) - 1
                        target = (output or theirs) if last else subprocess.PIPE
                        call = [sys.executable, *words[1:]] if is_own(words) else words
                        try:
                            process = subprocess.Popen(call, stdin=source, stdout=target, **shared)
                        except FileNotFoundError:
                            raise DataError(f"{words[0]}: no such program") from None
                        self._tell("+", process)
                        started.append(process)
                        if process.stdout:
                            source = closing.enter_context(process.stdout)
                _copy(ours, log, on_line)
            finally:
                os.close(ours)
            statuses = [process.wait() for process in started]
            for process in started:
                self._tell("-", process)
            if any(statuses):
                raise Failed(f"status {next(filter(None, statuses))}")


def _terminal() -> tuple[int, int]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *_ROWS_AND_COLUMNS, 0, 0))
    return ours, theirs


def search_path(path: str) -> str:
    """Return a PATH with the folder of this Python's programs appended.

    In an environment that is not activated, the PATH lacks this folder.
    """
    return os.pathsep.join(filter(None, [path, str(Path(sys.executable).parent)]))


def _copy(descriptor: int, log: IO[bytes], on_line: Callable[[str], object]) -> None:
    """Copy the output of commands to a log, but only the last state of each progress bar."""
    waiting = b""
    while True:
        try:
            block = os.read(descriptor, 2**16)
        except OSError:  # the end, on a terminal
            block = b""
        *lines, waiting = (waiting + block.replace(b"\r\n", b"\n")).split(b"\n")
        if not block and waiting:
            lines.append(waiting)
        for text in lines:
            final = text.rpartition(b"\r")[2]
            log.write(final + b"\n")
            on_line(final.decode(errors="replace"))
        log.flush()
        if not block:
            return
        if b"\r" in waiting:
            *_, state = waiting.rstrip(b"\r").rpartition(b"\r")
            on_line(state.decode(errors="replace"))
            waiting = b"\r" + state
