"""What other systems lack is taken away here."""

import os

import pytest

from syncattn_fairseq.base import systems
from syncattn_fairseq.base.files import open_file, replacing
from syncattn_fairseq.base.locks import claiming
from tests.importing import ROOT, run_program

#: Removes what Windows does not have, from modules that have it, and modules that it does not have.
WINDOWS = """
import os, signal, sys
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for module, names in {
    os: "O_NONBLOCK O_NOFOLLOW O_DIRECTORY sched_getaffinity register_at_fork fork killpg",
    signal: "SIGALRM SIGHUP SIGKILL ITIMER_REAL setitimer",
}.items():
    for name in names.split():
        delattr(module, name)
"""


def test_cores_are_those_of_the_process_or_on_macos_of_the_machine(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3})
    assert systems.count_cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    assert systems.count_cores() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert systems.count_cores() == 1


def test_nobody_asks_for_the_cores_in_another_way():
    for folder in ("syncattn_fairseq", "lab/syncattn_lab", "examples", "scripts"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.name != "systems.py":
                assert "sched_getaffinity" not in path.read_text(encoding="utf-8"), path


def test_without_locks_files_are_read_and_written(monkeypatch, tmp_path):
    monkeypatch.setattr(systems, "fcntl", None)
    with pytest.raises(OSError, match="not implemented"):
        systems.lock_file(0)
    path = tmp_path / "a"
    for text in ("one", "two"):
        with claiming(path), replacing(path) as new:
            new.write_text(text)
        with open_file(path) as file:
            assert file.read().decode() == text
    assert [*tmp_path.iterdir()] == [path]


def test_what_windows_lacks_is_not_needed_to_translate_and_to_serve(small_corpus, tmp_path):
    pytest.importorskip("ctranslate2")
    pytest.importorskip("uvicorn")
    [source] = small_corpus.learned()[:1]
    (tmp_path / "text").write_text(f"{source}\n", encoding="utf-8")
    program = (
        "import uvicorn, starlette.applications, ctranslate2\n"  # whatever these need, they find
        f"{WINDOWS}\n"
        "from syncattn_fairseq.cli import translate\n"
        "from syncattn_fairseq.serving import server\n"
        "path, text = sys.argv[1:]\n"
        "sys.exit(translate.main(['--path', path, '--input', text]))\n"
    )
    served = small_corpus.exported("ctranslate2")
    done = run_program(program, served, tmp_path / "text", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1 and done.stdout.strip()
