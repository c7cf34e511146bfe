"""A stand-in for fast_align that links the diagonal."""

import os
import sys
from pathlib import Path

import pytest

from syncattn_fairseq.lab.recipes.aligner import main

STAND_IN = f"""\
#!{sys.executable} -SE
import sys
assert sys.argv[1] == "-i" and {{"-d", "-o", "-v"}} <= {{*sys.argv}}, sys.argv
for line in open(sys.argv[2], encoding="utf-8"):
    source, target = (side.split() for side in line.split("|||"))
    assert source and target
    shift = int("-r" in sys.argv)
    print(*(f"{{i}}-{{i + shift}}" for i in range(min(len(source), len(target) - shift))))
"""


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "train.de": "a b c\n\n",
        "train.en": "x y z\nw\n",
        "test.de": "ein Hund\nja\n",
        "test.en": "a dog\nyes !\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin:/bin")
    (tmp_path / "bin").mkdir()
    return tmp_path


def run(words: Path) -> int:
    return main(["--words", str(words), "--languages", "de", "en"])


def install(words: Path, program: str) -> None:
    path = words / "bin" / "fast_align"
    path.write_text(program)
    path.chmod(0o755)


def test_links_of_the_test_set(words):
    install(words, STAND_IN)
    assert run(words) == 0
    assert (words / "fast_align.forward").read_text() == "0-0 1-1\n0-0\n"
    assert (words / "fast_align.backward").read_text() == "0-1\n0-1\n"


def test_a_program_that_fails_is_named(words, capsys):
    assert run(words) == 1
    assert "fast_align: No such file or directory" in capsys.readouterr().err
    install(words, "#!/bin/sh\necho 0-0\necho out of memory >&2\nexit 3\n")
    assert run(words) == 1
    assert "fast_align exited with status 3 after 1 lines: out of memory" in capsys.readouterr().err
    assert not list(words.glob("fast_align.*"))
