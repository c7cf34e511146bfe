"""Import a file that is part of no package, and run programs in processes of their own."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]


def import_file(path: Path) -> ModuleType:
    """Return a file's module, named after it, or after its folder if it is an ``__init__.py``."""
    name = path.parent.name if path.stem == "__init__" else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def forgetting_plugins() -> Iterator[None]:
    """Take out again what plugins register, each once a process, and the plugins themselves."""
    from fairseq.utils import import_user_module

    from syncattn_fairseq.criterions.terms.term import OBSERVERS, TERMS
    from syncattn_fairseq.modules.part import PARTS

    known = {*PARTS, *TERMS}
    imported: set[str] = getattr(import_user_module, "memo", set())
    before = {*imported}
    try:
        yield
    finally:
        imported = getattr(import_user_module, "memo", imported)
        for plugin in imported - before:
            imported.remove(plugin)
            sys.modules.pop(Path(plugin).name, None)
        for registry in (PARTS, TERMS):
            for name in registry.keys() - known:
                del registry[name]
        for notify in OBSERVERS:
            notify()


def fork(run: Callable[[], object]) -> int:
    """Run in a copy of this process, which has imported everything; return its status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = int(bool(run()))
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])  # not that of another child


def in_a_process(module):
    """Return the words that run a command of ours in a process of its own."""
    return [sys.executable, "-c", f"from {module} import main; exit(main())"]


def run_program(
    program: str, *arguments: object, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in Python, with our package."""
    words = [sys.executable, "-c", program, *map(str, arguments)]
    variables = {**os.environ, **environment}
    return subprocess.run(words, cwd=ROOT, env=variables, capture_output=True, text=True)
