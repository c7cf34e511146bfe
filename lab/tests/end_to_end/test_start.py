"""A recipe from a published model to a fine-tuned one that Transformers reads again."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from lab.tests.recipes.test_start import FACTS, write
from syncattn_fairseq.export import export
from tests.end_to_end.commands import BIN, FORKED
from tests.published import start_corpus, transformers


def run(work: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    own = work / "programs"  # Transformers needs libraries that the forked commands leave out
    own.mkdir(exist_ok=True)
    if not (own / "syncattn-import").exists():
        os.symlink(BIN / "syncattn-import", own / "syncattn-import")
    path = os.pathsep.join(map(str, (own, FORKED, BIN, os.environ["PATH"])))
    changes = {"PATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        ["syncattn-recipe", *map(str, arguments), "--work", work, "--cpu"],
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A corpus and the folder of its recipe, which has trained DBSA."""
    started = start_corpus(tmp_path_factory.mktemp("started"))
    work = tmp_path_factory.mktemp("work")
    facts = FACTS.replace("folder: words", f"folder: {started.folder / 'words'}")
    facts += "examine: {test_in_training: 1}\n"
    corpus = write(work, "../opus", facts)
    os.symlink(started.published, work / "opus")
    words = ("dbsa", "generation.max_len_b=20", "common.log_format=json")
    done = run(work, corpus, *words)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return started, work, corpus, words


def test_a_system_starts_from_the_published_model(done):
    started, work, corpus, words = done
    folder = work / "checkpoints" / "mine" / "dbsa" / "1"
    log = (folder / "train.log").read_text(encoding="utf-8")
    assert log.count("at first computes the same as the checkpoint") == 2
    assert json.loads((work / "results" / "mine.json").read_text())
    dictionaries = [path / "dict.en.txt" for path in (work / "data-bin" / "mine", started.imported)]
    assert dictionaries[0].read_bytes() == dictionaries[1].read_bytes()
    again = run(work, corpus, *words)
    assert again.returncode == 0 and ": done" not in again.stdout + again.stderr


def test_its_result_is_a_marian_model(done, tmp_path):
    _, work, _, _ = done
    path = work / "checkpoints" / "mine" / "dbsa" / "1" / "checkpoint_best.pt"
    verdict = export(path, work / "data-bin" / "mine", "marian", tmp_path / "hub")
    assert verdict.startswith("12 sentences have the same scores")
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "hub")
    model = transformers.MarianMTModel.from_pretrained(tmp_path / "hub")
    batch = tokenizer(["The old man sees a dog."], return_tensors="pt")
    assert tokenizer.batch_decode(model.generate(**batch, max_length=9), skip_special_tokens=True)
