"""Measure how the costs of binarising, scoring and reporting grow with the text.

Each command runs on generated pairs, few and many: ``syncattn-preprocess`` with the heads of both
sides, ``syncattn-score`` and ``syncattn-report`` with two systems, one of which printed parses and
alignments, against gold ones. The table has CPU microseconds per pair, without the program's start,
and the peak memory of the largest process.
Usage: ``python benchmarks/scaling.py --pairs 10000 100000 1000000``.
"""

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.start import megabytes, run  # noqa: E402
from syncattn_fairseq.base.text_tables import markdown_table  # noqa: E402


def read(path: Path) -> Iterator[str]:
    """Yield the lines of a file."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n")


def disturb(words: list[str], rng: random.Random) -> list[str]:
    """Return a translation that is not the reference: about every fifth word is another one."""
    return [rng.choice(words) if rng.random() < 0.2 else word for word in words]


def write_outputs(folder: Path) -> None:
    """Write the output of decoding with beam search and with forced references, as fairseq does."""
    names = ("en", "de", "heads.en", "heads.de", "align")
    columns = zip(*(read(folder / f"train.{name}") for name in names), strict=True)
    rng = random.Random(1)
    with ExitStack() as stack:
        beam, plain, forced = (
            stack.enter_context((folder / name).open("w")) for name in ("beam", "plain", "forced")
        )
        for n, (source, target, src_heads, tgt_heads, links) in enumerate(columns):
            plain.write(f"{' '.join(disturb(target.split(), rng))}\n")
            words = " ".join(disturb(target.split(), rng))
            lines = [f"S-{n}\t{source}", f"T-{n}\t{target}", f"H-{n}\t-0.5\t{words}"]
            beam.write("\n".join([*lines, f"D-{n}\t-0.5\t{words}", f"P-{n}\t-0.5 -0.5", ""]))
            found = {
                f"X-{n}\tsource\tword": " ".join(disturb(src_heads.split(), rng)),
                f"X-{n}\thypothesis\tword": " ".join(disturb(tgt_heads.split(), rng)),
                f"A-{n}": links.replace("?", "-"),
            }
            lines[2] = f"H-{n}\t-0.5\t{target}"
            forced.write("\n".join([*lines, *(f"{k}\t{v}" for k, v in found.items()), ""]))


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the commands to measure."""
    text = str(folder / "train")
    gold = ["--references", f"{text}.de", "--tokenize", "none", "--alignments", f"{text}.align"]
    gold += ["--source-heads", f"{text}.heads.en", "--target-heads", f"{text}.heads.de"]
    systems = ["--system", "first", str(folder / "beam"), str(folder / "forced")]
    systems += ["--system", "second", str(folder / "plain")]
    scored = [*systems, *gold, "--baseline", "second"]
    binarised = ["-s", "en", "-t", "de", "--joined-dictionary", "--destdir", str(folder / "bin")]
    return {
        "preprocess": ["syncattn-preprocess", *binarised, "--trainpref", text]
        + ["--trainheads", text],
        "score": ["syncattn-score", *scored, "--json", str(folder / "scores.json")],
        "report": ["syncattn-report", *scored, "--output", str(folder / "report.html")],
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--only", nargs="+", help="commands to measure")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    rows = [["command", "pairs", "CPU µs per pair", "MB"]]
    for pairs in args.pairs:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            sizes = ["--train", str(pairs), "--valid", "1", "--test", "1"]
            run(["syncattn-corpus", name, *sizes])
            write_outputs(folder)
            for command, words in commands(folder).items():
                if args.only and command not in args.only:
                    continue
                start, used = run([words[0], "--help"]), run(words)
                seconds = used.ru_utime + used.ru_stime - start.ru_utime - start.ru_stime
                each = f"{1e6 * seconds / pairs:,.0f}"
                rows.append([command, f"{pairs:,}", each, f"{megabytes(used):,.0f}"])
                print(*rows[-1], flush=True)
    print(f"\n{markdown_table(rows)}")


if __name__ == "__main__":
    main()
