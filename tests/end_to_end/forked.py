"""The real commands without the seconds that each takes to import its libraries.

A server imports them once. Programs with the names of the commands, for the front of PATH, send it
their arguments, environment, folder and open files, and it forks a process that is the command.
A second server has the modules of our own package too, for commands that are ours or name a
--user-dir: that is left to import the package and its plugin, which mends fairseq.
"""

from __future__ import annotations

import atexit
import gc
import importlib.util
import inspect
import logging
import marshal
import os
import pkgutil
import select
import signal
import socket
import socketserver
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

#: What stands for libraries that are left out.
UNUSED = Path(__file__).parent / "unused"
#: Not fairseq_cli itself, which sets up the log of the command that is imported.
LIBRARIES = (
    *("fairseq.trainer", "fairseq.options", "fairseq.sequence_generator", "fairseq.scoring"),
    *("fairseq.dataclass.initialize", "hydra.main"),
    *("stanza.pipeline.core", "stanza.models.pos.trainer", "stanza.models.depparse.trainer"),
    *("sacrebleu", "sacremoses", "sentencepiece"),
)

_PROGRAM = """\
#!{python} -ISE
import _socket, marshal, os, sys  # what the module socket imports takes as long as Python itself
words = [{name!r}, *sys.argv[1:]]
ours = words[0].startswith("syncattn-") or any("user-dir" in w or "user_dir" in w for w in words)
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({addresses!r}[ours])
files = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([b"0"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
server.sendall(marshal.dumps((words, os.getcwd(), dict(os.environ))))
sys.exit(int(server.recv(10) or 137))
"""


@contextmanager
def forked_commands(folder: Path) -> Iterator[Path]:
    """Give a folder of programs that are the commands, for the time of a block.

    Nothing is imported before the first command.
    """
    addresses = [str(folder / name) for name in ("fairseq", "ours")]
    programs = folder / "bin"
    programs.mkdir()
    for name in _commands():
        path = programs / name
        path.write_text(_PROGRAM.format(python=sys.executable, addresses=addresses, name=name))
        path.chmod(0o755)
    path = os.pathsep.join(map(str, (UNUSED, UNUSED.parents[2])))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    words = [sys.executable, __file__, *addresses]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=log)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield programs
    finally:
        server.terminate()
        server.wait()


@cache
def _commands() -> dict[str, EntryPoint]:
    entries = entry_points(group="console_scripts")
    return {
        entry.name: entry for entry in entries if entry.name.startswith(("fairseq-", "syncattn-"))
    }


class _Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """Forks every command and waits for it, so that its seconds are in an account."""

    block_on_close = False
    max_children = request_queue_size = 100


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _, descriptors, _, _ = socket.recv_fds(self.request, 1, 3)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        logging.getLogger().handlers.clear()  # of what was imported; the command has its own
        status = _become(*marshal.load(self.request.makefile("rb")))
        self.request.sendall(str(status).encode())


def _serve(*addresses: str) -> None:
    servers = [_Server(address, _Handler) for address in addresses]
    print("ready", flush=True)
    select.select(servers, [], [])
    for library in LIBRARIES:
        importlib.import_module(library)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    second = os.fork()
    if second == 0:
        _import_modules()
    _warm()
    _commands()
    for finalizer in weakref.finalize._registry:  # torch would take back its operators, one by one
        finalizer.atexit = False
    gc.disable()  # a command makes little garbage; to look for it copies what is shared
    try:
        servers[not second].serve_forever()
    finally:
        if second:
            os.kill(second, signal.SIGTERM)
            os.waitpid(second, 0)


def _import_modules() -> None:
    """Import our modules; that of the plugin, and the package, are left to the command."""
    left = "syncattn_fairseq", "syncattn_fairseq.plugin"
    sys.modules[left[1]] = ModuleType(left[1])
    importlib.import_module("syncattn_fairseq.models")
    importlib.import_module("syncattn_fairseq.tasks")
    importlib.import_module("syncattn_fairseq.criterions.label_smoothed_cross_entropy_with_syntax")
    importlib.import_module("syncattn_lab.cli.recipe")
    patches = importlib.import_module("syncattn_fairseq.patches")
    for module in pkgutil.iter_modules(patches.__path__, f"{patches.__name__}."):
        importlib.import_module(module.name)
    # Models that have hardly been trained do not know where a sentence ends.
    importlib.import_module("syncattn_fairseq.inference.model").MAX_LEN = 50
    if importlib.util.find_spec("altair"):
        importlib.import_module("syncattn_lab.report.charts")
    for name in left:
        del sys.modules[name]


def _warm() -> None:
    """Let hydra do once, before commands are forked, what takes half of a command's time."""
    once = importlib.import_module("hydra.types").RunMode.RUN
    # To know that it trains once, hydra would compose all settings once more.
    importlib.import_module("hydra._internal.hydra").Hydra.get_mode = lambda *_, **__: once
    # To know its caller's file, it would read the source of all callers.
    utils = importlib.import_module("hydra._internal.utils")
    utils.inspect = SimpleNamespace(stack=lambda: inspect.stack(0)[1:])
    # It would copy all configs, in case that another composition follows.
    repository = importlib.import_module("hydra._internal.config_repository")
    repository.copy = SimpleNamespace(deepcopy=lambda configs: configs)
    parser = importlib.import_module("hydra.core.override_parser.overrides_parser").OverridesParser
    parser.parse_rule = _remember(parser.parse_rule)
    options = importlib.import_module("fairseq.options")
    convert = importlib.import_module("fairseq.dataclass.utils").convert_namespace_to_omegaconf
    words = ["data", "--arch=transformer", "--optimizer=adam", "--lr-scheduler=inverse_sqrt"]
    convert(options.parse_args_and_arch(options.get_training_parser(), words))
    convert(options.parse_args_and_arch(options.get_generation_parser(), words[:1]))


def _remember(parse: Callable[[Any, str, str], Any]) -> Callable[[Any, str, str], Any]:
    """Parse the same settings of fairseq once."""
    parsed: dict[tuple[str, str], Any] = {}

    def parse_rule(self: Any, text: str, rule: str) -> Any:
        if (text, rule) not in parsed:
            parsed[text, rule] = parse(self, text, rule)
        return parsed[text, rule]

    return parse_rule


def _become(words: Sequence[str], work: str, environment: Mapping[str, str]) -> int:
    """Run a command in this process, as if it had been started; return its status."""
    sys.argv = list(words)
    os.chdir(work)
    os.environ.clear()
    os.environ.update(environment)
    if "torch" in sys.modules and "OMP_NUM_THREADS" in environment:  # read only at import
        sys.modules["torch"].set_num_threads(int(environment["OMP_NUM_THREADS"]))
    if any(word.startswith(("--html", "--report")) for word in words):  # needs what others do not
        sys.path.remove(str(UNUSED))
        for name in [name for name in sys.modules if name.partition(".")[0] == "scipy"]:
            del sys.modules[name]
    try:
        status = _commands()[words[0]].load()()
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
    _serve(*sys.argv[1:])
