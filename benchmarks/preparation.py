"""Measure time, memory and disk of each stage that prepares a corpus, and project them to WMT.

Text from the built-in grammar goes through the real commands, one process each. Times are CPU
seconds without the start of the program, which depend less on other work on the machine.
``--stanza-dir`` has the models to parse with, ``en_tagger.pt`` and ``en_parser.pt``; without it
nothing is parsed. The projection divides the time of parallel stages by ``--cores``, as if cores
did not slow each other down. Both sides are parsed at the English speed.
Usage: ``python benchmarks/preparation.py --pairs 200000 --stanza-dir DIR``.
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

from syncattn_fairseq.evaluation.table import markdown_table  # noqa: E402

#: Pairs, words of both sides, and GB of the archives.
CORPORA = {"WMT14": (4.5e6, 230e6, 1.7), "WMT17": (5.9e6, 290e6, 2.4)}
LANGUAGES = ("en", "de")
#: Stages that use all cores of a machine.
PARALLEL = ("tokenise", "apply subwords", "parse", "binarise")


@dataclass
class Measured:
    """The costs of a stage.

    Attributes:
        seconds: CPU seconds, without the start of the program.
        memory: peak memory of its largest process, in MB.
        written: bytes of its output.
        words: words of its input.
    """

    seconds: float
    memory: float
    written: int
    words: int


def run(words: list[str]) -> tuple[float, float]:
    """Run a command; return its CPU seconds and its peak memory in MB."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            sys.exit(f"{words[0]}: {errors.read().decode(errors='replace')[-2000:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def commands(work: Path) -> dict[str, list[str]]:
    """Return the command of each stage, as in a recipe."""
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
    return found


def measure_parser(stanza: Path, text: Path) -> Measured:
    """Parse in this process: the costs of syncattn-parse's processes are hard to see."""
    # Imported here, since a new process counts the memory of its parent as its own.
    from syncattn_fairseq.parsing.registry import open_parser

    parser = open_parser(f"stanza:en:{stanza}")
    sentences = [line.split() for line in text.read_text(encoding="utf-8").splitlines()]
    parser(sentences[:1])
    start = time.process_time()
    parses = parser(sentences)
    seconds = time.process_time() - start
    written = sum(len(" ".join(map(str, parse.heads))) + 1 for parse in parses if parse)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Measured(seconds, memory, written, sum(map(len, sentences)))


def prepare(work: Path, pairs: int, parsed: int) -> None:
    """Write the archive, the heads of the text, and the text to parse."""
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
    """Return the total size of all files in bytes."""
    return sum(path.stat().st_size for path in work.rglob("*") if path.is_file())


def measure(work: Path, pairs: int, stanza: Path | None, parsed: int) -> dict[str, Measured]:
    """Run every stage once."""
    prepare(work, pairs, parsed)
    total = sum(len((work / f"generated/train.{x}").read_text().split()) for x in LANGUAGES)
    found = {}
    for name, words in commands(work).items():
        start, _ = run([words[0], "--help"])
        before = made(work)
        seconds, memory = run(words)
        found[name] = Measured(max(seconds - start, 1e-3), memory, made(work) - before, total)
    if stanza:
        found["parse"] = measure_parser(stanza, work / "words/parsed.en")
    return found


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--parsed", type=int, default=2_000, help="sentences to parse")
    parser.add_argument("--stanza-dir", type=Path)
    parser.add_argument("--cores", type=int, default=16, help="cores in the projection")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), args.pairs, args.stanza_dir, args.parsed)
    rows = [["stage", "CPU seconds", "words/s per core", "MB of a process", "bytes/word written"]]
    for name, one in found.items():
        speed = f"{one.words / one.seconds:,.0f}" if one.seconds > 1 else "needs more --pairs"
        row = [f"{one.seconds:.1f}", speed, f"{one.memory:.0f}"]
        rows.append([name, *row, f"{one.written / one.words:.1f}"])
    print(f"{args.pairs:,} pairs\n\n{markdown_table(rows)}\n")
    rows = [["stage", *(f"{name}, hours, GB" for name in CORPORA), "processes × MB"]]
    for name, one in found.items():
        cores = args.cores if name.startswith(PARALLEL) else 1
        row = []
        for _, words, _ in CORPORA.values():
            hours = words * one.seconds / one.words / cores / 3600
            row.append(f"{hours:.2f}, {words * one.written / one.words / 1e9:.1f}")
        rows.append([name, *row, f"{cores} × {one.memory:.0f}"])
    sizes = (
        f"{name}: {n / 1e6:.1f}M pairs, {w / 1e6:.0f}M words" for name, (n, w, _) in CORPORA.items()
    )
    archives = ", ".join(f"{gb} GB" for _, _, gb in CORPORA.values())
    print(
        f"{'; '.join(sizes)}; archives of {archives}; {args.cores} cores\n\n{markdown_table(rows)}"
    )


if __name__ == "__main__":
    main()
