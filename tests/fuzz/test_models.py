"""Checkpoints with any options, and exported folders with any files, are loaded or refused.

A case takes a tenth of a second, so there are a tenth as many as of other files.
"""

import copy
import json
import shutil
from argparse import Namespace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

import syncattn_fairseq
from syncattn_fairseq.base.files import hash_file
from tests.checkpoints import Corpus
from tests.fuzz.mutation import fuzzed, mutate, refusing

ARCHES = ("transformer_syncattn", "transformer_lpsi", "transformer_pascal", "rnn_local_double")
CODE = "__import__('pathlib').Path('PWNED').touch()"
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, -1, 7, 64, 10**5, 10**9, 10**40, 0.5, -2.5, 1e300),
    *(float("nan"), float("inf"), "", "0", "1", "1,2", "0,1", "x", "none", "softmax", "../x"),
    *(".", "/dev/zero", "/nowhere/syncattn_fairseq", "${model.dropout}", "${oc.env:HOME}", "${"),
    *(CODE, f"[{CODE}]", "[1, 2]", "{'name': 'favor'}", "[" * 500, "9" * 5000, "a\nb", "\ud800"),
    *([], [1], ["x"], {}, {"x": 1}, {"xformers_att_config": CODE}, Namespace(), Namespace(x=[1])),
    *(torch.zeros(2), torch.tensor(float("nan")), (1, 2), b"x", {1: 2}),
]


@pytest.fixture(scope="module")
def states(small_corpus: Corpus) -> list[dict[str, Any]]:
    return [torch.load(small_corpus.checkpoint(arch)) for arch in ARCHES]


def groups(state: dict[str, Any]) -> list[dict[Any, Any]]:
    """List the tables in which an option can change, those that matter most more than once."""
    cfg, weights = state["cfg"], state["model"]
    rest = [cfg["task"], cfg["common"], cfg, state, weights, state["optimizer_history"][0]]
    return [*[vars(cfg["model"])] * 9, *[cfg["task"]] * 2, *rest]


def change(state: dict[str, Any], random: Random) -> None:
    for _ in range(random.randint(1, 3)):
        tables = [group for group in groups(state) if isinstance(group, dict) and group]
        group = random.choice(tables)
        name = random.choice(list(group))
        match random.randint(0, 9):
            case 0:
                del group[name]
            case 1:
                group[name] = random.choice(list(group.values()))
            case 2:
                group[str(random.choice(VALUES))] = group[name]
            case _:
                group[name] = random.choice(VALUES)


def try_out(path: Path, **options: Any) -> None:
    """Load a model and let it read a sentence; whatever is wrong is one line."""
    with refusing("", OSError):
        syncattn_fairseq.load(path, device="cpu", **options).align(["the dog"], ["der Hund"])
    assert not Path("PWNED").exists()


@pytest.mark.filterwarnings("ignore::UserWarning")  # fairseq's, for the oldest checkpoints
def test_any_options_of_a_checkpoint(small_corpus, states, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("__init__.py").write_text("import pathlib\npathlib.Path('PWNED').touch()\n")
    path = tmp_path / "model.pt"

    def check(seed: int) -> None:
        random = Random(seed)
        state = copy.deepcopy(random.choice(states))
        try:
            change(state, random)
        except (KeyError, TypeError, AttributeError, IndexError):
            return  # an earlier change has removed a table
        torch.save(state, path)
        try_out(path, data_bin=small_corpus.data, subwords=small_corpus.subwords)

    fuzzed(check, 0.1)()


def mutate_export(whole: Path, folder: Path, random: Random) -> None:
    """Make a folder like another one, but for one file."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    names = sorted(path.name for path in whole.iterdir())
    texts = [name for name in names if name.endswith((".json", ".txt"))]
    name = random.choice(random.choice([names, texts]))
    if random.random() < 0.05:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(mutate((whole / name).read_bytes(), random))
    if name in texts and name != "syncattn.json" and random.random() < 0.7:
        # As a stranger would, who can make checksums. The model itself is read by other code.
        about = json.loads((folder / "syncattn.json").read_text())
        about["files"] = {path.name: hash_file(path) for path in folder.iterdir()}
        del about["files"]["syncattn.json"]
        (folder / "syncattn.json").write_text(json.dumps(about))


@pytest.mark.parametrize("format", ["fairseq", "ctranslate2"])
def test_any_files_of_an_export(small_corpus, tmp_path, format, monkeypatch):
    if format == "ctranslate2":
        pytest.importorskip("ctranslate2")
    monkeypatch.chdir(tmp_path)
    whole, folder = small_corpus.exported(format), tmp_path / "mutated"

    def check(seed: int) -> None:
        mutate_export(whole, folder, Random(seed))
        try_out(folder)

    fuzzed(check, 0.1)()
