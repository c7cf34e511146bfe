"""Our commands and fairseq's, forked from a process that has imported their libraries once.

Otherwise each would import them again, which takes up to six seconds, longer than most commands'
work. Until the libraries are imported, and if they cannot be, commands are started normally.

This file also runs as the forking process; it must not import the package, since ``--user-dir``
does that.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path

#: The commands that recipes start most. fairseq's others set up logging before importing anything.
COMMANDS = ("fairseq-preprocess", "fairseq-hydra-train", "fairseq-generate", "syncattn-")
#: Without fairseq_cli, whose modules each command imports itself.
LIBRARIES = (
    *("fairseq.trainer", "fairseq.options", "fairseq.sequence_generator", "fairseq.scoring"),
    *("fairseq.dataclass.initialize", "hydra.main", "torch._dynamo"),  # used by the first optimizer
    *("sacrebleu", "sentencepiece"),
)
#: The status of a process that was killed.
_KILLED = 137


class Fork:
    """A running command.

    Args:
        answers: socket that sends its process id, and then its status.
    """

    stdout = None

    def __init__(self, answers: socket.socket) -> None:
        self._answers = answers.makefile()
        self.pid = int(self._answers.readline())

    def wait(self) -> int:
        """Wait for its end; return its status."""
        return int(self._answers.readline() or _KILLED)

    def kill(self) -> None:
        """Kill it."""
        os.kill(self.pid, signal.SIGKILL)


class Forks:
    """Starts commands of this environment.

    Args:
        environment: variables for all commands that must be set from the start.
        libraries: modules to import once for all commands.
    """

    def __init__(
        self, environment: Mapping[str, str], libraries: Sequence[str] = LIBRARIES
    ) -> None:
        self._environment, self._libraries = environment, libraries
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._ready = False
        scripts = entry_points(group="console_scripts")
        self._names = {script.name for script in scripts if script.name.startswith(COMMANDS)}

    def start(
        self,
        words: Sequence[str],
        program: str | None,
        work: Path,
        environment: Mapping[str, str],
        files: Sequence[int],
    ) -> Fork | None:
        """Start a command if it is a known one and the libraries are imported.

        Args:
            words: the command line.
            program: the program that its first word names.
            work: folder to run in.
            environment: all of its variables.
            files: its open files: standard input, output, error, and any others.
        """
        if words[0] not in self._names or program != str(Path(sys.executable).parent / words[0]):
            return None
        with self._lock:
            if self._server is None:
                self._open()
            if not self._is_ready():
                return None
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    socket.send_fds(self._requests, [b"0"], [theirs.fileno(), *files])
                ours.sendall(
                    json.dumps([list(words), str(work), dict(environment)]).encode() + b"\n"
                )
                return Fork(ours)
            except (OSError, ValueError):  # the forking process is gone: out of memory, perhaps
                ours.close()
                self._ready = False
                return None

    def close(self) -> None:
        """Let the forking process end; commands continue."""
        if self._server is not None:
            self._requests.close()

    def _open(self) -> None:
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), *self._libraries],
                env={**os.environ, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # only this process handles Ctrl-C
            )

    def _is_ready(self) -> bool:
        if not self._ready and select.select([self._requests], [], [], 0)[0]:
            self._ready = self._requests.recv(1) != b""
        return self._ready


def serve(requests: socket.socket, libraries: Sequence[str]) -> None:
    """Import libraries, then fork a process for each requested command until the socket closes."""
    for library in libraries:
        importlib.import_module(library)
    gc.collect()
    gc.freeze()  # otherwise garbage collection would copy shared memory
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    requests.sendall(b"1")
    while True:
        asked, files, _, _ = socket.recv_fds(requests, 1, 64)
        if not asked:
            return
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _keep(socket.socket(fileno=files[0]), files[1:])
            os._exit(0)
        for number in files:
            os.close(number)


def _keep(answers: socket.socket, files: Sequence[int]) -> None:
    """Fork the command itself, and send its process id and its status."""
    words, work, environment = json.loads(answers.makefile().readline())
    command = os.fork()
    if command == 0:
        answers.close()
        os.setpgid(0, 0)
        for number, file in enumerate(files[:3]):
            os.dup2(file, number)
            os.close(file)
        os._exit(become(words, work, environment))
    os.setpgid(command, command)  # the child does it too; here, it is done before the id is sent
    for file in files:
        os.close(file)
    answers.sendall(f"{command}\n".encode())
    status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    answers.sendall(f"{status if status >= 0 else 128 - status}\n".encode())


def become(words: Sequence[str], work: str, environment: Mapping[str, str]) -> int:
    """Run a command in this process, as if it had been started; return its status."""
    sys.argv = list(words)
    os.chdir(work)
    os.environ.clear()
    os.environ.update(environment)
    if "torch" in sys.modules and "OMP_NUM_THREADS" in environment:  # read only at import
        sys.modules["torch"].set_num_threads(int(environment["OMP_NUM_THREADS"]))
    (command,) = entry_points(group="console_scripts", name=words[0])
    try:
        status = command.load()()
    except SystemExit as end:
        status = end.code
        if isinstance(status, str):
            print(status, file=sys.stderr)
            status = 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    atexit._run_exitfuncs()  # stops data loaders, which would keep our output open for seconds
    sys.stdout.flush()
    sys.stderr.flush()
    return int(status or 0)


if __name__ == "__main__":
    del sys.path[0]  # this folder, whose files are not top-level modules
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
