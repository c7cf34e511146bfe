"""Every reader takes what is right, and refuses anything else with one line that names the file.

``FUZZ_CASES`` says how many mutated files each reader gets; see :mod:`tests.fuzz.mutation`.
"""

import bz2
import gzip
import json
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from fairseq.data.indexed_dataset import MMapIndexedDataset

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.text import count_lines, read_lines
from syncattn_fairseq.cli import bpe
from syncattn_fairseq.data.fingerprint import Fingerprint, read_stored
from syncattn_fairseq.data.labels import load_dictionary, load_unambiguous
from syncattn_fairseq.data.mmap_blocks import check_dataset, check_symbols, write_dataset
from syncattn_fairseq.data.parses import check_tree, parse_heads, read_heads, read_labels
from syncattn_fairseq.data.pieces import apply_pieces, open_pieces
from syncattn_fairseq.data.preparation import stored_schemes
from syncattn_fairseq.data.words import SCHEMES
from syncattn_fairseq.export.card import read_scores
from syncattn_fairseq.parsing.formats import FORMATS
from syncattn_fairseq.parsing.manifest import Manifest
from syncattn_fairseq.parsing.parse_corpus import convert_parsed
from syncattn_fairseq.trees.brackets import read_trees
from tests.fuzz.mutation import check_accepted, check_mutated, fuzzed, mutate, refusing
from tests.parsing.test_formats import CONLLU, EDA, sentence_of_json

HEADS = "2 0 2\n\n0\n3 3 0 3\n"
SCORES = {
    "systems": {"a": {"sentences": 2, "scores": {"BLEU": 1.5}, "signatures": {"BLEU": "tok:none"}}}
}
TEXT = "the man sleeps\n\nyes\nit rains im Haus\n"
JSON = {
    "docId": "a",
    "sentences": [
        sentence_of_json(
            ["the", "man", "sleeps"], [(1, 2, "det"), (2, 3, "nsubj"), (3, 0, "ROOT")]
        ),
        sentence_of_json(["{", "}"], [(1, 0, "ROOT"), (2, 1, "dep")]),
    ],
}
MANIFEST = {
    "text": "f" * 64,
    "settings": {"parser": "chain", "max_words": 9},
    "models": {"/m": "a" * 64},
    "shards": [[0, 0, 9, 1, 2, 3, "b" * 64]],
    "outputs": {"heads": "c" * 64},
    "report": {"sentences": 2, "words": 3, "empty": {"empty line": 1}, "failures": [[1, "x"]]},
}


def consume(reader: Callable[[Path], Any]) -> Callable[[Path], Any]:
    return lambda path: list(reader(path))


def read_tree_heads(path: Path) -> None:
    """Whatever is accepted is a number for each word, and a tree or none."""
    for line, heads in zip(read_lines(path), read_heads(path), strict=True):
        assert line.split() == [] if heads is None else len(line.split()) == len(heads)
        with suppress(DataError):
            check_tree(heads or [])


def read_table(name: str) -> Callable[[Path], Any]:
    def read(path: Path) -> None:
        for analysis in FORMATS[name](read_lines(path), str(path)):
            assert all(isinstance(word, str) for word in analysis.words)
            if analysis.heads is not None:
                assert len(analysis.heads) == len(analysis.labels) == len(analysis.words)
                assert all(type(head) is int and head >= 0 for head in analysis.heads)
                assert all(len(label.split()) == 1 for label in analysis.labels)

    return read


def convert(path: Path) -> None:
    """Heads are written for each line of the text, trees or nothing."""
    text, output = path.with_name("text"), path.with_name("heads")
    text.write_text(TEXT)
    output.unlink(missing_ok=True)
    convert_parsed(text, path, "conllu", {"heads": output})
    lines = output.read_text().splitlines()
    assert len(lines) == 4
    for line, words in zip(lines, TEXT.splitlines(), strict=True):
        heads = parse_heads(line, output, 1)
        assert not heads or (len(heads) == len(words.split()) and check_tree(heads) is None)


def read_manifest(path: Path) -> None:
    found = Manifest.read(path)
    if found is not None:
        found.list_differences(found)
        assert found.report.summarise()
        found.write(path)
        assert Manifest.read(path) == found


def read_schemes(path: Path) -> None:
    path.replace(path.with_name("subwords.json"))
    assert set(stored_schemes(path.parent).values()) <= set(SCHEMES)


FINGERPRINT = {
    "meaning": {"dict.en.txt": "0a" * 32, "preparation.json (en)": "1b" * 32},
    "provenance": [{"train.en-de.en": {"size": 12, "sha256": "2c" * 32}}, {}],
}


def read_fingerprint(path: Path) -> None:
    path.replace(path.with_name("fingerprint.json"))
    found = read_stored(path.parent)
    assert found is not None and Fingerprint.from_plain(found.as_plain()) == found
    for folder in found.provenance:
        assert all(dataset.size + 0 == dataset.size for dataset in folder.values())


READERS: dict[str, tuple[str | bytes, Callable[[Path], Any]]] = {
    "lines": (TEXT, consume(read_lines)),
    "line count": (TEXT, count_lines),
    "bzip2": (bz2.compress(TEXT.encode() * 9), consume(read_lines)),
    "gzipped": (gzip.compress(TEXT.encode() * 9, mtime=0), consume(read_lines)),
    "heads": (HEADS, read_tree_heads),
    "labels": (HEADS, consume(read_labels)),
    "trees": ("(S (NP (DT the) (NN man)) (VP (VBZ sleeps)))\n\n(())\n", consume(read_trees)),
    "dictionary": ("nsubj 12\ndet 7\nroot 3\n", load_dictionary),
    "schemes": ('{"en": "subword_nmt", "de": "none"}', read_schemes),
    "manifest": (json.dumps(MANIFEST), read_manifest),
    "conllu": (CONLLU, read_table("conllu")),
    "conllx": (CONLLU.replace("3-4", "#").replace("5.1", "#"), read_table("conllx")),
    "eda": (EDA, read_table("eda")),
    "eda-conll": ("1 a _ _ _ _ 2\n2 b _ _ _ _ 0\n\n1 c _ _ _ _ 0\n", read_table("eda-conll")),
    "corenlp-conll": (
        "1\ta\t_\t_\t_\t2\tdep\n2\tb\t_\t_\t_\t0\troot\n",
        read_table("corenlp-conll"),
    ),
    "corenlp-json": (json.dumps(JSON, indent=1), read_table("corenlp-json")),
    "parsed text": (CONLLU, convert),
    "dictionary to reuse": ("a 12\nb 7\na@@ 3 #fairseq:overwrite\n", load_unambiguous),
    "scores": (json.dumps(SCORES), read_scores),
    "fingerprint": (json.dumps(FINGERPRINT), read_fingerprint),
}


@pytest.mark.parametrize("name", READERS)
def test_valid_files_are_accepted(tmp_path, name):
    check_accepted(tmp_path / "file", *READERS[name])


@pytest.mark.parametrize("name", READERS)
def test_mutated_files_are_read_or_refused_in_one_line(tmp_path, name):
    check_mutated(tmp_path / "file", *READERS[name], names="file|subwords.json|fingerprint.json")


@pytest.fixture(scope="module")
def model() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "text").write_text(TEXT)
        argv = ["learn", "--vocab-size=25", f"--model={folder}/m", "--input", f"{folder}/text"]
        assert bpe.main(argv) == 0
        return Path(folder, "m.model").read_bytes()


@pytest.mark.parametrize("suffix", ["idx", "bin"])
def test_damaged_datasets(tmp_path, suffix):
    write_dataset(tmp_path / "x", np.int16, [(np.arange(5), np.array([2, 2, 1]))])
    valid = (tmp_path / f"x.{suffix}").read_bytes()

    def check(seed: int) -> None:
        (tmp_path / f"x.{suffix}").write_bytes(mutate(valid, Random(seed)))
        with refusing(re.escape(f"{tmp_path}/x.")):
            check_dataset(f"{tmp_path}/x")
            check_symbols(f"{tmp_path}/x", 9)
            # What is accepted can be read.
            assert sum(map(len, MMapIndexedDataset(f"{tmp_path}/x"))) > 0

    fuzzed(check)()


def test_damaged_sentencepiece_models(tmp_path, model):
    path = tmp_path / "m.model"

    def check(seed: int) -> None:
        path.write_bytes(mutate(model, Random(seed)))
        with refusing(path.name):
            apply_pieces(open_pieces(path), "the man")

    fuzzed(check)()
