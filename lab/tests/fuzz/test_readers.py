"""The laboratory's readers, as those of the plugin in :mod:`tests.fuzz.test_readers`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.tests.evaluation.test_contrastive import CONTRAPRO, LINGEVAL
from lab.tests.printed.making import line
from syncattn_lab.evaluation.alignment import read_alignments
from syncattn_lab.evaluation.contrastive import read_contrastive
from syncattn_lab.evaluation.grouped_text import read_parses
from syncattn_lab.evaluation.results_file import load_results, record
from syncattn_lab.evaluation.results_tables import tabulate_rows
from syncattn_lab.evaluation.table_rows import make_rows
from syncattn_lab.evaluation.translation import read_text
from syncattn_lab.printed.output import read_output
from syncattn_lab.printed.training_log import read_training_log
from tests.fuzz.mutation import check_accepted, check_mutated
from tests.fuzz.test_readers import TEXT

CELL = {
    **{"system": "base", "seed": 1, "overrides": {}, "scores": {"BLEU": 1.5}, "commit": "abc"},
    **{"signatures": {"BLEU": "tok:none"}, "valid": {"loss": 3.0}, "updates": 850},
    **{"seconds": 90.0, "updates_per_second": 9.5, "hardware": "a CPU"},
}
RESULTS = {"corpus": "x", "cells": [CELL, {**CELL, "seed": 2}, {**CELL, "system": "ours"}]}
LOG = (
    "2026-01-01 10:00:00 | INFO | train_inner | epoch 001: 5 / 9 loss=9.1, num_updates=5, lr=0.1\n"
    '2026-01-01 10:00:00 | INFO | valid | {"epoch": 1, "valid_loss": "8.5", "num_updates": "9"}\n'
)
DECODED = """\
S-1\tthe man
H-1\t-0.5\tder Mann
D-1\t-0.5\tder Mann
P-1\t-0.1 -0.2
A-1\t0-0 1-1
S-0\tyes
H-0\t-0.5\tja
"""
RECORDS = line(
    *("der Mann", None, "the man"),
    source_heads=[2, 0],
    target_distances={2: [0.2, -0.1]},
    links=[(0, 0), (1, 1)],
    layer_links={(6, 0): [(0, 0)], (6, 2): []},
) + line("ja", forced=True)


def read_links(path: Path) -> None:
    sure, possible = read_alignments(path)
    assert all(min(link) >= 0 for links in (*sure, *possible) for link in links)


def read_results(path: Path) -> None:
    """Whatever is accepted can be shown, and recorded."""
    results = load_results(path)
    names = [*dict.fromkeys(cell["system"] for cell in results["cells"])]
    if names:
        tabulate_rows(make_rows(results, names, None, lambda name: names[0])).format()
    record(path, results["corpus"], [])


def read_pairs(path: Path) -> None:
    """What is accepted can be scored: each text is a line."""
    for pair in read_contrastive(path):
        for text in (pair.source, pair.right, *pair.wrong):
            assert text.strip() and "\n" not in text and "\r" not in text
        assert pair.distance is None or pair.distance >= 0


def read_json_pairs(path: Path) -> None:
    """The same of JSON, which a file's name says."""
    renamed = path.with_name(f"{path.name}.json")
    path.rename(renamed)
    read_pairs(renamed)


READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "references": (TEXT, read_text),
    "alignments": ("0-0 1?1 2p3\n\n7-7\n", read_links),
    "fairseq's output": (DECODED, read_output),
    "records": (RECORDS, read_output),
    "translations with links": ("der Mann ||| 0-0 1-1\nja ||| 0-0\n", read_output),
    "n-best list": ("0 ||| der Mann ||| a= 1 ||| -1\n1 ||| ja ||| a= 1 ||| -1\n", read_output),
    "Sockeye's output": ('{"translation": "der Mann"}\n{"translation": "ja"}\n', read_output),
    "results": (json.dumps(RESULTS), read_results),
    "training log": (LOG, read_training_log),
    "contrastive pairs": ("the man\tder Mann\tdie Mann\tagreement\t1\na\tb\tc\n", read_pairs),
    "LingEval97": (json.dumps(LINGEVAL), read_json_pairs),
    "ContraPro": (json.dumps(CONTRAPRO), read_json_pairs),
    "parses": ("1\tthe\t_\tDET\t_\t_\t0\troot\t_\t_\n\n", read_parses),
}


@pytest.mark.parametrize("name", READERS)
def test_valid_files_are_accepted(tmp_path, name):
    check_accepted(tmp_path / "file", *READERS[name])


@pytest.mark.parametrize("name", READERS)
def test_mutated_files_are_read_or_refused_in_one_line(tmp_path, name):
    check_mutated(tmp_path / "file", *READERS[name])
