"""Throughput, memory and disk of each stage that prepares a corpus, and what WMT would take.

Text of the built-in grammar goes through the real commands, on one core. ``--stanza-dir`` has the
models to parse with, ``en_tagger.pt`` and ``en_parser.pt``; without it nothing is parsed. The
projection divides by throughput times ``--cores``, for what works on all of them.
Usage: ``python benchmarks/preparation.py --pairs 200000``.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from syncattn_fairseq.evaluation.table import format_table  # noqa: E402

#: Pairs, words of both sides, and GB of the archives.
CORPORA = {"WMT14": (4.5e6, 230e6, 1.7), "WMT17": (5.9e6, 290e6, 2.4)}
LANGUAGES = ("en", "de")
#: Those that use all cores of a machine.
PARALLEL = ("tokenise", "parse", "binarise")


@dataclass
class Measured:
    """What a stage took.

    Attributes:
        seconds: of the clock, without the start of the program.
        memory: most of any process, in MB.
        written: bytes of what it made.
        words: that it worked on.
    """

    seconds: float
    memory: float
    written: int
    words: int


def run(words: list[str], source: Path | None = None, output: Path | None = None) -> float:
    """Run a command and return its seconds."""
    began = time.perf_counter()
    with open(source or os.devnull, "rb") as stdin, open(output or os.devnull, "wb") as stdout:
        subprocess.run(
            words, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, check=True, text=True
        )
    return time.perf_counter() - began


def commands(work: Path, pairs: int, stanza: Path | None, parsed: int) -> dict[str, list[str]]:
    """Return the command of each stage, as a recipe has them."""
    raw, words, pieces = work / "raw", work / "words", work / "pieces"
    both = [f"train.{language}" for language in LANGUAGES]
    collected = ["--languages", *LANGUAGES, "--output", str(raw / "train")]
    found = {
        "collect": ["syncattn-collect", "--archives", str(work), *collected]
        + ["plain=archive.tgz!train.{language}"],
        "tokenise": ["syncattn-tokenise", "--lang", "en"]
        + ["--input", *(str(raw / name) for name in both)]
        + ["--output", *(str(work / "tokens" / name) for name in both)],
        "clean": ["syncattn-clean", "--languages", *LANGUAGES, "--max-words", "100"]
        + ["--ratio", "2", "--input", str(work / "tokens/train"), "--output", str(words / "train")],
        "learn subwords": ["syncattn-bpe", "learn", "--vocab-size", "5000"]
        + ["--model", str(pieces / "bpe"), "--input", *(str(words / name) for name in both)],
        "apply subwords": ["syncattn-bpe", "apply", "--model", str(pieces / "bpe.model")]
        + ["--input", *(str(words / name) for name in both)]
        + ["--output", *(str(pieces / name) for name in both)],
        "binarise": ["fairseq-preprocess", "-s", "en", "-t", "de", "--joined-dictionary"]
        + ["--destdir", str(work / "bin"), "--workers", "1", "--trainpref", str(pieces / "train")],
        "binarise heads": ["syncattn-preprocess", "-s", "en", "-t", "de", "--add", "heads.en"]
        + ["heads.de", "--destdir", str(work / "bin"), "--trainpref", str(pieces / "train")]
        + ["--trainheads", str(words / "train")],
    }
    if stanza:
        found["parse"] = ["syncattn-parse", "--parser", "stanza", "--lang", "en"]
        found["parse"] += ["--stanza-dir", str(stanza), "--input", str(words / "parsed.en")]
        found["parse"] += ["--output", str(words / "parsed.heads.en"), "--workers", "1"]
    return found


def prepare(work: Path, pairs: int, parsed: int) -> None:
    """Write the archive, and the heads of the text."""
    for name in ("tokens", "words", "raw", "pieces"):
        (work / name).mkdir()
    generated = work / "generated"
    options = ["--train", str(pairs), "--valid", "1", "--test", "1"]
    run(["syncattn-corpus", str(generated), *options])
    with tarfile.open(work / "archive.tgz", "w:gz") as archive:
        for language in LANGUAGES:
            archive.add(generated / f"train.{language}", f"train.{language}")
            shutil.copy(generated / f"train.heads.{language}", work / "words")
    with (generated / "train.en").open() as text, (work / "words/parsed.en").open("w") as file:
        file.writelines(line for _, line in zip(range(parsed), text, strict=False))


def made(work: Path) -> int:
    """Return the bytes of all files."""
    return sum(path.stat().st_size for path in work.rglob("*") if path.is_file())


def measure(work: Path, pairs: int, stanza: Path | None, parsed: int) -> dict[str, Measured]:
    """Run every stage once."""
    prepare(work, pairs, parsed)
    total = sum(len((work / f"generated/train.{x}").read_text().split()) for x in LANGUAGES)
    few = len((work / "words/parsed.en").read_text().split())
    found = {}
    for name, words in commands(work, pairs, stanza, parsed).items():
        start = run([words[0], "--help"])
        before, memory = made(work), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        seconds = max(run(words) - start, 1e-3)
        # The most of all commands so far: it grows where one takes more.
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        count = few if name == "parse" else total
        found[name] = Measured(seconds, memory / 1024, made(work) - before, count)
    return found


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--parsed", type=int, default=2_000, help="sentences to parse")
    parser.add_argument("--stanza-dir", type=Path)
    parser.add_argument("--cores", type=int, default=16, help="of the projection")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), args.pairs, args.stanza_dir, args.parsed)
    rows = [["stage", "seconds", "words/s", "most memory so far, MB", "bytes/word written"]]
    for name, one in found.items():
        speed = f"{one.words / one.seconds:,.0f}" if one.seconds > 1 else "take more --pairs"
        row = [f"{one.seconds:.1f}", speed, f"{one.memory:.0f}"]
        rows.append([name, *row, f"{one.written / one.words:.1f}"])
    print(f"{args.pairs:,} pairs, one core each\n\n{format_table(rows)}\n")
    rows = [["stage", *(f"{name}, {args.cores} cores" for name in CORPORA), "disk"]]
    for name, one in found.items():
        cores = args.cores if name.startswith(PARALLEL) else 1
        hours = [words * one.seconds / one.words / cores / 3600 for _, words, _ in CORPORA.values()]
        disk = [words * one.written / one.words / 1e9 for _, words, _ in CORPORA.values()]
        shown = ", ".join(f"{gigabytes:.1f} GB" for gigabytes in disk)
        known = one.seconds > 1
        rows.append([name, *(f"{time:.2f} h" if known else "–" for time in hours), shown])
    print(format_table(rows))


if __name__ == "__main__":
    main()
