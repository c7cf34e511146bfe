"""The Japanese words of the recipes, by a stand-in that escapes as KyTea does."""

import os
import subprocess
from pathlib import Path

import pytest

from syncattn_lab.recipes.corpus_facts import load_corpus
from tests import japanese

CONFIGS = Path(__file__).parents[3] / "configs"
CORPORA = sorted(p.parent.name for p in CONFIGS.glob("*/_data.yaml") if "kytea" in p.read_text())


def words(command: str, text: str, programs: Path) -> list[str]:
    japanese.install(programs)
    done = subprocess.run(
        ["bash", "-c", command],
        input=text,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_the_stand_in_escapes_as_kytea_does(tmp_path):
    assert words("kytea -notags", "5/R&\\ \n", tmp_path) == ["5\\/ R\\& \\\\\\ "]
    assert words("kytea -notags -out tok", "5/R&\n", tmp_path) == ["5/ R&"]


@pytest.mark.parametrize("corpus", CORPORA)
def test_no_character_of_japanese_is_changed(corpus, tmp_path):
    command = load_corpus(CONFIGS / corpus).words["ja"]
    text = ["5 / 6 の R & D", "円\\100 です。", "", "a b"]
    found = words(command, "".join(f"{line}\n" for line in text), tmp_path)
    assert ["".join(line.split()) for line in found] == ["".join(t.split()) for t in text]
    assert found[0] == "5/ 6の R& D"
