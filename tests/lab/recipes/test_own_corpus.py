"""The corpus that docs/recipes.md describes, and its table of keys."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from syncattn_fairseq.lab.cli import collect
from syncattn_fairseq.lab.cli.recipe import main
from syncattn_fairseq.lab.recipes.corpus_facts import Archive, Corpus, Here, Subwords

PAGE = (Path(__file__).parents[3] / "docs" / "recipes.md").read_text(encoding="utf-8")
OWN = PAGE[PAGE.index("## Your own corpus") : PAGE.index("## How long")]


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    for name, text in re.findall(r"```yaml\n# (configs/\S+)\n(.*?)```", OWN, re.DOTALL):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        assert text.count("\n") < 20
    return tmp_path / "configs"


def test_the_example_of_the_docs(configs, tmp_path, capsys, monkeypatch):
    command = ["mine", "@all", f"--configs={configs}", f"--work={tmp_path}", "--dry-run"]
    monkeypatch.delenv("MINE", raising=False)
    assert main(command) == 1
    assert capsys.readouterr().err == (
        "error: MINE: set this variable to the folder of the texts\n"
    )
    texts = tmp_path / "texts"
    texts.mkdir()
    for split in ("train", "valid", "test"):
        for language in ("en", "de"):
            (texts / f"{split}.{language}.txt").write_text(f"{split} {language}\n" * 2)
    monkeypatch.setenv("MINE", str(texts))
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[3:] for line in lines if line.startswith("== ") and "seed" not in line] == [
        *("mine: download en", "mine: download de", "mine: collect", "mine: tokenise"),
        *("mine: clean", "mine: subwords", "mine: parse en", "mine: parse de", "mine: binarise"),
        *("mine: binarise record", "mine: binarise heads de", "mine: binarise heads en"),
    ]
    assert sum("train" in line for line in lines if line.startswith("== ")) == 3
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpora" / "mine" / "raw").mkdir(parents=True)
    for line in lines:
        if line.startswith("$ syncattn-collect"):
            assert collect.main(line.replace("'", "").split()[2:]) == 0
    read = (tmp_path / "corpora" / "mine" / "raw" / "valid.de").read_text(encoding="utf-8")
    assert read == "valid de\n" * 2


def test_the_table_has_all_keys():
    rows = [line.split("|") for line in OWN.splitlines() if line.startswith("| `")]
    keys = {key for row in rows for key in re.findall(r"`(\w+)`", row[1])}
    derived = {"folder", "source", "target"}
    assert keys == {field.name for field in fields(Corpus)} - derived - {"every", "last"}
    named = {key: row[2] for row in rows for key in re.findall(r"`(\w+)`", row[1])}
    assert "every" in named["valid"] and "last" in named["valid"]
    for key, kind in (("here", Here), ("archives", Archive), ("subwords", Subwords)):
        assert all(f"`{field.name}" in named[key] for field in fields(kind)), key
