"""A small corpus with parses, and models trained on it for a few updates."""

from pathlib import Path

import pytest

from syncattn_fairseq.cli import bpe, preprocess
from syncattn_fairseq.data.parses import SPLITS
from syncattn_lab.synthetic.generated_corpus import write_corpus
from tests.end_to_end import commands

VALID, TEST = 21, 37  # multiples of nothing that fairseq likes


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with words, heads and subwords: ``words/train.en``, ``pieces/train.en``, ..."""
    folder = tmp_path_factory.mktemp("text")
    words, pieces = folder / "words", folder / "pieces"
    pieces.mkdir()
    write_corpus(words, {"test": TEST, "valid": VALID, "train": 400}, seed=7)
    model = str(folder / "bpe")
    inputs = [str(words / f"train.{language}") for language in ("en", "de")]
    bpe.main(["learn", "--vocab-size=300", f"--model={model}", "--input", *inputs])
    names = [f"{split}.{language}" for split in SPLITS for language in ("en", "de")]
    outputs = [str(pieces / name) for name in names]
    inputs = [str(words / name) for name in names]
    bpe.main(["apply", f"--model={model}.model", "--input", *inputs, "--output", *outputs])
    return folder


def binarise(text: Path, destination: Path, *options: str) -> Path:
    """Run our preprocessing on all splits."""
    arguments = ["-s=en", "-t=de", f"--destdir={destination}", "--joined-dictionary"]
    for split in SPLITS:
        arguments += [f"--{split}pref={text / 'pieces' / split}"]
        arguments += [f"--{split}heads={text / 'words' / split}"]
    assert preprocess.main([*arguments, *options]) == 0
    return destination


@pytest.fixture(scope="session")
def data(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The binarised corpus."""
    return binarise(text, tmp_path_factory.mktemp("data") / "bin")


@pytest.fixture(scope="session")
def syncattn(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with checkpoints of SyncAttn after 5, 10 and 15 updates."""
    folder = tmp_path_factory.mktemp("syncattn")
    options = ("--max-update=15", "--save-interval-updates=5", "--decoder-layers=3")
    output = commands.train(data, folder, "transformer_syncattn", *options)
    (folder / "log").write_text(output)
    return folder
