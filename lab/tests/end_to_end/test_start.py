"""The commands of docs/export.md that start from a published model, run as they are printed."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import syncattn_fairseq
from lab.tests.end_to_end.test_docs import ROOT, blocks
from syncattn_lab.synthetic.generated_corpus import write_corpus
from tests.checkpoints import write_raw
from tests.end_to_end.commands import BIN, FORKED
from tests.published import transformers, write_opus

PAGE = "docs/export.md"
#: What is smaller here; parsers of chance are in the place of Stanza's.
SMALLER = {
    "tuned transformer dbsa --seeds 1 2 3": "tuned dbsa optimization.max_update=2 "
    "generation.max_len_b=9 common.log_format=json --seeds 1 --cpu",
    "syncattn-translate ": "syncattn-translate --max-len 5 ",
    "syncattn-parse --lang $side": "syncattn-parse --parser random",
    "--max-update 1000": "--max-update 2 --cpu",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with raw text and a published model, in which the commands run."""
    folder = tmp_path_factory.mktemp("start")
    (folder / "syncattn_fairseq").symlink_to(ROOT / "syncattn_fairseq")
    write_corpus(folder / "raw", {"test": 12, "valid": 12, "train": 120}, seed=3)
    for path in [
        folder / "raw" / f"{x}.{y}" for x in ("train", "valid", "test") for y in ("en", "de")
    ]:
        write_raw(path)
    texts = [(folder / "raw" / f"train.{side}").read_text().splitlines() for side in ("en", "de")]
    write_opus(folder / "opus-mt-en-de", *texts)
    # Transformers needs libraries that the forked commands leave out.
    (folder / "programs").mkdir()
    for name in ("syncattn-import", "syncattn-export"):
        (folder / "programs" / name).symlink_to(BIN / name)
    return folder


def run(folder: Path, script: str) -> str:
    for words, smaller in SMALLER.items():
        script = script.replace(words, smaller)
    path = os.pathsep.join(map(str, (folder / "programs", FORKED, BIN, os.environ["PATH"])))
    changes = {"PATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{script}"],
        cwd=folder,
        env={**os.environ, **changes, "PARSER_EN": "random", "PARSER_DE": "random"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def find_block(words: str) -> str:
    [code] = [
        block.code for block in blocks(PAGE) if block.language == "bash" and words in block.code
    ]
    return code


@pytest.fixture(scope="module")
def said(folder):
    return run(folder, find_block("syncattn-import opus-mt-en-de"))


def test_a_published_model_is_tuned_and_published_again(said, folder, monkeypatch, capsys):
    assert re.search(
        r"imported: 20 sentences have the same log-probabilities as in the published model, "
        r"to \de-0\d;",
        said,
    )
    assert "12 sentences have the same scores to" in said
    log = (folder / "checkpoints" / "tuned" / "dbsa" / "1" / "train.log").read_text()
    assert log.count("at first computes the same as the checkpoint") == 2
    card = (folder / "opus-mt-en-de-tuned" / "README.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    monkeypatch.chdir(folder)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()
    kind = transformers.MarianMTModel
    before, after = (
        kind.from_pretrained(folder / name) for name in ("opus-mt-en-de", "opus-mt-en-de-tuned")
    )
    assert before.config.vocab_size == after.config.vocab_size
    changed = [
        name
        for name, value in before.state_dict().items()
        if not value.equal(after.state_dict()[name])
    ]
    assert "model.decoder.layers.0.self_attn.q_proj.weight" in changed


def test_the_same_text_without_a_recipe(said, folder):
    run(folder, find_block("--start imported --destdir"))
    for name in ("dict.en.txt", "preparation.json", "subwords.json", "train.en-de.en.bin"):
        paths = [folder / "data-bin" / corpus / name for corpus in ("tuned", "by_hand")]
        assert name.startswith("train") or paths[0].read_bytes() == paths[1].read_bytes()
    best = folder / "checkpoints" / "by_hand" / "checkpoint_best.pt"
    model = syncattn_fairseq.load(best, folder / "data-bin" / "by_hand", device="cpu")
    assert model.parse(["The old man."], ["Der Mann."])[0].source.sentence.words[-1] == "."


def test_a_recipe_imports_a_published_model_once(said, folder):
    facts = (folder / "tuned" / "_data.yaml").read_text()
    mine = folder / "mine"
    mine.mkdir()
    published = json.dumps(str(folder / "opus-mt-en-de"))
    (mine / "_data.yaml").write_text(re.sub("start: .*", f"start: {published}", facts))
    (mine / "_corpus.yaml").write_text((folder / "tuned" / "_corpus.yaml").read_text())
    call = "syncattn-recipe mine --to import --cpu"
    assert "mine: import: done" in run(folder, call)
    made = folder / "corpora" / "mine" / "start" / "model.pt"
    time = made.stat().st_mtime_ns
    assert "done" not in run(folder, call) and made.stat().st_mtime_ns == time
    assert "finetune_from_model=corpora/mine/start/model.pt" in run(
        folder, "syncattn-recipe mine dbsa --dry-run --cpu"
    )
    run(folder, "syncattn-recipe mine --from import --to import --cpu")
    assert made.stat().st_mtime_ns > time
