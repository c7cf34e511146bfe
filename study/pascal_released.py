"""Fetch the translations that PASCAL's authors released, and score them.

    python -m study.pascal_released --work pascal --results study/results/released/pascal.json
    python -m study.pascal_released --table study/results/released/pascal.json

29 of the 30 systems of the paper are there, under the MIT licence, one training each. The files are
those of one commit, and are checked (`pascal_released.json`). Translations are compared with the
references of the release, and words of Japanese are those of its KyTea.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_json, replacing
from syncattn_fairseq.base.text_tables import markdown_table
from syncattn_lab.evaluation.intervals import Interval
from syncattn_lab.evaluation.length import score_by_length
from syncattn_lab.evaluation.measures import NONE, format_p
from syncattn_lab.evaluation.significance import (
    bootstrap_interval,
    compute_bleu,
    compute_precision,
    randomisation,
)
from syncattn_lab.evaluation.translation import count_ngrams, read_text, score_chrf, score_ribes
from syncattn_lab.recipes.downloads import fetch

#: The files of the release and their checksums.
MANIFEST = Path(__file__).with_suffix(".json")
#: By folder of the release: the corpus's name here, and the paper's scores of its test text.
PUBLISHED: dict[str, tuple[str, dict[str, float]]] = {
    "nc11en2de": (
        "nc11_en_de",
        dict(transformer=25.0, pascal=25.9, lisa=25.5, multi_task=24.8, sh=25.5),
    ),
    "nc11de2en": (
        "nc11_de_en",
        dict(transformer=26.6, pascal=27.4, lisa=27.2, multi_task=26.7, sh=26.8),
    ),
    "wmt18en2tr": (
        "wmt18_en_tr",
        dict(transformer=13.1, pascal=14.0, lisa=13.6, multi_task=14.0, sh=13.0),
    ),
    "wmt16en2de": ("wmt16_en_de", dict(transformer=33.0, pascal=33.9, multi_task=32.4, sh=31.9)),
    "wmt17en2de": (
        "wmt17_en_de",
        dict(transformer=25.5, pascal=26.1, lisa=25.9, multi_task=24.6, sh=25.1),
    ),
    "wat18en2ja": (
        "aspec_en_ja",
        dict(transformer=43.1, pascal=44.0, lisa=43.2, multi_task=43.1, sh=42.8),
    ),
}
#: RIBES as the release has it, by its authors' script.
PUBLISHED_RIBES = {
    "transformer": 0.834628,
    "pascal": 0.852133,
    "lisa": 0.835056,
    "multi_task": 0.848746,
    "sh": 0.838788,
}
#: By system here: its folder in the release.
FOLDERS = {
    "transformer": "transformer",
    "pascal": "transformer_pascal",
    "lisa": "transformer_lisa",
    "multi_task": "transformer_multitask",
    "sh": "transformer_tagemb",
}
BASELINE = "transformer"


def download(work: Path, source: str | None) -> dict[str, Path]:
    """Download the missing files of the release; return all of its files by their path in it.

    Args:
        work: the folder that they are in, or will be.
        source: where the folder ``experiments`` of the release is; None: on GitHub.

    Raises:
        DataError: a file cannot be fetched, or is another than that of the release.
    """
    manifest = read_json(MANIFEST)
    address = f"{manifest['repository']}/raw/{manifest['commit']}/experiments"
    work.mkdir(parents=True, exist_ok=True)
    found = {}
    for path, known in manifest["files"].items():
        name = path.replace("/", ".")
        found[path] = fetch(f"{source or address}/{path}", work, name, **known)
    return found


def score(files: Mapping[str, Path]) -> list[dict[str, Any]]:
    """Score all released translations, and compare each system with the Transformer."""
    rows = []
    for folder, (corpus, published) in PUBLISHED.items():
        japanese = corpus == "aspec_en_ja"
        kind, tokenize = (".tok", "none") if japanese else ("", "13a")
        base = f"{folder}/{FOLDERS[BASELINE]}/outputs"
        truth = read_text(files[f"{base}/truth{kind}.test"])
        lengths = [len(line.split()) for line in read_text(files[f"{base}/src.tok.test"])]
        theirs: np.ndarray | None = None
        for system, paper in published.items():
            text = read_text(files[f"{folder}/{FOLDERS[system]}/outputs/preds{kind}.test"])
            counts = count_ngrams(text, truth, tokenize)
            row = {"corpus": corpus, "system": system, "published": paper}
            row |= measure(counts) | {"chrF": round(score_chrf(text, truth).score, 4)}
            if japanese:
                ours, gold = [line.lower() for line in text], [line.lower() for line in truth]
                row["RIBES lower case"] = round(score_ribes(ours, gold, "none").score / 100, 6)
                row["RIBES released"] = PUBLISHED_RIBES[system]
            if theirs is None:
                theirs = counts
            else:
                row |= compare(counts, theirs, lengths)
            rows.append(row)
    return rows


def measure(counts: np.ndarray) -> dict[str, Any]:
    """Compute BLEU with and without brevity penalty, length in per cent, and n-gram precisions."""
    totals = counts.sum(0).astype(float)
    return {
        "BLEU": round(float(compute_bleu(totals)), 4),
        "without penalty": round(float(compute_precision(totals)), 4),
        "length": round(100 * totals[0] / totals[1], 4),
        "precisions": np.round(100 * totals[2:6] / totals[6:10], 4).tolist(),
    }


def compare(ours: np.ndarray, theirs: np.ndarray, lengths: Sequence[int]) -> dict[str, Any]:
    """Compare with a baseline over sentences: differences, their 95 % intervals, and p."""
    found: dict[str, Any] = {}
    for name, function in (("BLEU", compute_bleu), ("without penalty", compute_precision)):
        both = [function(counts.sum(0).astype(float)) for counts in (ours, theirs)]
        ends = bootstrap_interval(ours, theirs, function)
        found[f"Δ {name}"] = [round(float(x), 4) for x in (both[0] - both[1], *ends)]
    found["p"] = randomisation([ours], [theirs])[1]
    buckets = score_by_length(ours, lengths, theirs)
    before = score_by_length(theirs, lengths)
    found["by length"] = {
        name: [round(each.bleu - before[name].bleu, 4), *np.round(each.interval or [], 4).tolist()]
        for name, each in buckets.items()
    }
    return found


def make_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of all systems, followed by a table of PASCAL by sentence length."""
    header = ["corpus", "system", "paper", "BLEU", "length", "chrF", "Δ BLEU", "p"]
    table = [[*header, "Δ without penalty"]]
    by_length: list[list[str]] = []
    for row in rows:
        cells = [row["corpus"], row["system"], f"{row['published']:.1f}", f"{row['BLEU']:.2f}"]
        cells += [f"{row['length']:.1f}", f"{row['chrF']:.1f}"]
        if row["system"] == BASELINE:
            table.append([*cells, NONE, NONE, NONE])
            continue
        differences = [
            Interval(*row[f"Δ {name}"]).format(2) for name in ("BLEU", "without penalty")
        ]
        table.append([*cells, differences[0], format_p(row["p"]), differences[1]])
        if row["system"] == "pascal":
            by_length = by_length or [["corpus", *row["by length"]]]
            shown = [
                Interval(*each).format(1) if len(each) == 3 else NONE
                for each in row["by length"].values()
            ]
            by_length.append([row["corpus"], *shown])
    return f"{markdown_table(table)}\n\n{markdown_table(by_length)}"


def main(words: Sequence[str] | None = None) -> None:
    """Download and score the released translations, or print tables of their scores.

    ``words`` are the command's arguments; None: those of the process.
    """
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--work", type=Path, default=Path("pascal"), help="where the files are put")
    made.add_argument("--source", help="where they are, such as file:///FOLDER (default: GitHub)")
    made.add_argument("--results", type=Path, help="JSON file to write")
    made.add_argument("--table", type=Path, metavar="RESULTS", help="only print the tables")
    args = made.parse_args(words)
    if args.table:
        print(make_table(read_json(args.table)))
        return
    if args.results is None:
        raise DataError("give --results, or --table")
    rows = score(download(args.work, args.source))
    args.results.parent.mkdir(parents=True, exist_ok=True)
    with replacing(args.results) as temporary:
        temporary.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(make_table(rows))


if __name__ == "__main__":
    main()
