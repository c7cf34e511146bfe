"""Every reader takes what is right, and refuses anything else with one line that names the file.

``FUZZ_CASES`` says how many mutated files each reader gets; ``scripts/fuzz.sh`` asks for more.
"""

import bz2
import gzip
import json
import os
import re
import resource
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from fairseq.data.indexed_dataset import MMapIndexedDataset
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.text import count_lines, read_lines
from syncattn_fairseq.base.text_tables import format_table
from syncattn_fairseq.cli import bpe
from syncattn_fairseq.data.labels import load_dictionary, load_unambiguous
from syncattn_fairseq.data.mmap_blocks import check_dataset, check_symbols, write_dataset
from syncattn_fairseq.data.parses import check_tree, parse_heads, read_heads, read_labels
from syncattn_fairseq.data.pieces import apply_pieces, open_pieces
from syncattn_fairseq.data.preparation import stored_schemes
from syncattn_fairseq.data.words import SCHEMES
from syncattn_fairseq.export.card import read_scores
from syncattn_fairseq.lab.evaluation.alignment import read_alignments
from syncattn_fairseq.lab.evaluation.results_file import load_results, record
from syncattn_fairseq.lab.evaluation.results_tables import make_rows, make_tables
from syncattn_fairseq.lab.evaluation.translation import read_text
from syncattn_fairseq.parsing.formats import FORMATS
from syncattn_fairseq.parsing.manifest import Manifest
from syncattn_fairseq.parsing.parse_corpus import convert_parsed
from syncattn_fairseq.printed.decoded import read_decoded
from syncattn_fairseq.printed.training_log import read_training_log
from syncattn_fairseq.trees.brackets import read_trees
from tests.fuzz.mutation import mutate, refusing
from tests.parsing.test_formats import CONLLU, EDA, sentence_of_json

CASES = int(os.environ.get("FUZZ_CASES", "200"))
MEMORY = 2**28
"""Bytes that a reader may take for a file of a few kilobytes."""

HEADS = "2 0 2\n\n0\n3 3 0 3\n"
CELL = {
    **{"system": "base", "seed": 1, "overrides": {}, "scores": {"BLEU": 1.5}, "commit": "abc"},
    **{"signatures": {"BLEU": "tok:none"}, "valid": {"loss": 3.0}, "updates": 850},
    **{"seconds": 90.0, "updates_per_second": 9.5, "hardware": "a CPU"},
}
RESULTS = {"corpus": "x", "cells": [CELL, {**CELL, "seed": 2}, {**CELL, "system": "ours"}]}
SCORES = {
    "systems": {"a": {"sentences": 2, "scores": {"BLEU": 1.5}, "signatures": {"BLEU": "tok:none"}}}
}
LOG = (
    "2026-01-01 10:00:00 | INFO | train_inner | epoch 001: 5 / 9 loss=9.1, num_updates=5, lr=0.1\n"
    '2026-01-01 10:00:00 | INFO | valid | {"epoch": 1, "valid_loss": "8.5", "num_updates": "9"}\n'
)
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
DECODED = """\
S-1\tthe man
H-1\t-0.5\tder Mann
D-1\t-0.5\tder Mann
P-1\t-0.1 -0.2
A-1\t0-0 1-1
X-1\tsource\tword\t2 0
X-1\thypothesis\tdistance-2\t0.2000 -0.1000
L-1\t6\t0-0 1-1
S-0\tyes
H-0\t-0.5\tja
"""
MANIFEST = {
    "text": "f" * 64,
    "settings": {"parser": "chain", "max_words": 9},
    "models": {"/m": "a" * 64},
    "shards": [[0, 0, 9, 1, 2, 3, "b" * 64]],
    "outputs": {"heads": "c" * 64},
    "report": {"sentences": 2, "words": 3, "empty": {"empty line": 1}, "failures": [[1, "x"]]},
}


def fuzzed(check: Callable[[int], None], share: float = 1) -> Callable[[], None]:
    """Call a check with the seeds of its mutations.

    Args:
        share: of the cases, less than 1 for a slow check.
    """
    given_seeds = given(st.integers(0, 2**64))
    limits = settings(
        max_examples=max(1, int(CASES * share)),
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],  # a smaller seed is no smaller file
    )
    test: Callable[[], None] = limits(given_seeds(check))
    return test


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


def read_links(path: Path) -> None:
    sure, possible = read_alignments(path)
    assert all(min(link) >= 0 for links in (*sure, *possible) for link in links)


def read_schemes(path: Path) -> None:
    path.replace(path.with_name("subwords.json"))
    assert set(stored_schemes(path.parent).values()) <= set(SCHEMES)


def read_results(path: Path) -> None:
    """Whatever is accepted can be shown, and recorded."""
    results = load_results(path)
    names = [*dict.fromkeys(cell["system"] for cell in results["cells"])]
    if names:
        make_tables(make_rows(results, names, None, lambda name: names[0]), format_table)
    record(path, results["corpus"], [])


READERS: dict[str, tuple[str | bytes, Callable[[Path], Any]]] = {
    "lines": (TEXT, consume(read_lines)),
    "line count": (TEXT, count_lines),
    "bzip2": (bz2.compress(TEXT.encode() * 9), consume(read_lines)),
    "gzipped": (gzip.compress(TEXT.encode() * 9, mtime=0), consume(read_lines)),
    "heads": (HEADS, read_tree_heads),
    "labels": (HEADS, consume(read_labels)),
    "references": (TEXT, read_text),
    "trees": ("(S (NP (DT the) (NN man)) (VP (VBZ sleeps)))\n\n(())\n", consume(read_trees)),
    "alignments": ("0-0 1?1 2p3\n\n7-7\n", read_links),
    "decoded": (DECODED, read_decoded),
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
    "results": (json.dumps(RESULTS), read_results),
    "scores": (json.dumps(SCORES), read_scores),
    "training log": (LOG, read_training_log),
}


@pytest.mark.parametrize("name", READERS)
def test_valid_files_are_accepted(tmp_path, name):
    content, read = READERS[name]
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    read(path)


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("name", READERS)
def test_mutated_files_are_read_or_refused_in_one_line(tmp_path, name):
    valid, read = READERS[name]
    valid = valid if isinstance(valid, bytes) else valid.encode()
    path = tmp_path / "file"
    before = memory()

    def check(seed: int) -> None:
        path.write_bytes(mutate(valid, Random(seed)))
        with refusing(f"{path.name}|subwords.json"):
            read(path)

    fuzzed(check)()
    assert memory() - before < MEMORY


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
