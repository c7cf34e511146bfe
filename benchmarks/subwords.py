"""Measure speed and memory of binarising heads: read, checked, mapped to subwords and written.

A corpus is generated in a temporary folder: lines have about 18 words, 25 subwords (``@@``) and a
random tree. Ours takes turns with a plain loop that checks nothing, in one process; times are CPU
seconds, which depend less on other work on the machine. Peak memory is measured in a new process
for each size. Usage: ``python benchmarks/subwords.py [--lines 1000000 4000000]``.
"""

import argparse
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from syncattn_fairseq.data.binarise import HEADS, AnnotatedText, binarise, check_lengths  # noqa: E402
from syncattn_fairseq.data.mmap_blocks import write_dataset  # noqa: E402

TEXT, HEADS_FILE, WORDS, DATASET = "pieces.en", "words.heads.en", "words.en", "text"
SHORTEST, LONGEST = 8, 28
"""Words in a sentence."""


def make_corpus(folder: Path, lines: int, block: int = 20_000) -> int:
    """Write subwords, words, heads and the text as a dataset, and return the number of subwords."""
    rng = np.random.default_rng(1)
    subwords, words, pieces = make_vocabulary(rng)
    numbers = np.array([str(number) for number in range(LONGEST + 1)], dtype=object)
    total = 0

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        nonlocal total
        for start in range(0, lines, block):
            sizes = rng.integers(SHORTEST, LONGEST + 1, min(block, lines - start))
            chosen = rng.integers(0, len(words), sizes.sum())
            ends = sizes.cumsum()
            text.writelines(joined(subwords[chosen], ends))
            plain.writelines(joined(words[chosen], ends))
            heads.writelines(joined(numbers[random_trees(rng, sizes)], ends))
            entries = np.add.reduceat(pieces[chosen], ends - sizes) + 1  # the end of sentence
            total += int((entries - 1).sum())
            yield np.zeros(entries.sum(), np.int16), entries

    with (
        open(folder / TEXT, "w", encoding="utf-8") as text,
        open(folder / WORDS, "w", encoding="utf-8") as plain,
        open(folder / HEADS_FILE, "w", encoding="utf-8") as heads,
    ):
        write_dataset(folder / DATASET, np.int16, blocks())
    return total


def make_vocabulary(
    rng: np.random.Generator, size: int = 20_000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return words split into one to three subwords, the words, and each one's subword count."""
    pieces = rng.choice([1, 2, 3], size, p=[0.7, 0.2, 0.1])
    words = [
        ["".join(chr(97 + letter) for letter in rng.integers(0, 26, n)) for n in lengths]
        for lengths in (rng.integers(1, 8, count) for count in pieces)
    ]
    cut = np.array(["@@ ".join(word) for word in words], dtype=object)
    return cut, np.array(["".join(word) for word in words], dtype=object), pieces


def random_trees(rng: np.random.Generator, sizes: np.ndarray) -> np.ndarray:
    """Return heads of sentences: random words to the left, in every other sentence to the right.

    Args:
        rng: random number generator.
        sizes: (sentences,) number of words of each.

    Returns:
        (words of all sentences,).
    """
    size = np.repeat(sizes, sizes)
    place = np.arange(len(size)) - np.repeat(sizes.cumsum() - sizes, sizes)
    mirrored = np.repeat(np.arange(len(sizes)) % 2 == 1, sizes)
    place = np.where(mirrored, size - 1 - place, place)
    head = np.where(place > 0, 1 + (rng.random(len(size)) * place).astype(np.int64), 0)
    return np.where(mirrored & (head > 0), size + 1 - head, head)


def joined(tokens: np.ndarray, ends: np.ndarray) -> Iterator[str]:
    """Yield the lines of a block."""
    words, start = tokens.tolist(), 0
    for end in ends.tolist():
        yield " ".join(words[start:end]) + "\n"
        start = end


def plain_loop(folder: Path) -> None:
    """Binarise heads in the most obvious way, without any check."""
    builder = MMapIndexedDatasetBuilder(str(folder / "loop.bin"), dtype=np.int16)
    with (
        open(folder / TEXT, encoding="utf-8") as texts,
        open(folder / HEADS_FILE, encoding="utf-8") as parses,
    ):
        for text, parse in zip(texts, parses, strict=True):
            heads = iter(parse.split())
            marks, starts = [], True
            for subword in text.split():
                marks.append(int(next(heads)) if starts else -1)
                starts = not subword.endswith("@@")
            builder.add_item(torch.tensor(marks))
    builder.finalize(str(folder / "loop.idx"))


def ours(folder: Path, words: bool) -> None:
    """Check and binarise as ``syncattn-preprocess`` does.

    Args:
        folder: folder of the corpus.
        words: compare the subwords with the words.
    """
    plain = folder / WORDS if words else None
    source = AnnotatedText(folder / TEXT, HEADS, folder / HEADS_FILE, "subword_nmt", plain)
    binarise(source, folder / "ours")
    check_lengths(source, folder / "ours", folder / DATASET)


def compare_speed(lines: int, rounds: int) -> None:
    """Print subwords per second, and the quartiles of the rounds' ratios to the loop."""
    actions: dict[str, Callable[[Path], None]] = {
        "plain loop, no checks": plain_loop,
        "check and binarise": lambda folder: ours(folder, False),
        "the same, and compare words": lambda folder: ours(folder, True),
    }
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    with TemporaryDirectory() as name:
        folder = Path(name)
        subwords = make_corpus(folder, lines)
        for _ in range(rounds):
            for action, run in actions.items():
                start = time.process_time()
                run(folder)
                seconds[action].append(time.process_time() - start)
        for suffix in ("bin", "idx"):
            made = [(folder / f"{who}.{suffix}").read_bytes() for who in ("loop", "ours")]
            assert made[0] == made[1], "the loop and ours must write the same"
    print(f"{lines:,} lines, {subwords:,} subwords, {rounds} rounds, one core")
    print(f"{'':34}{'subwords/s':>12}{'ratio':>8}   quartiles of the ratio")
    baseline = seconds["plain loop, no checks"]
    for action, values in seconds.items():
        ratios = [b / a for a, b in zip(values, baseline, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        speed = subwords / statistics.median(values)
        print(f"{action:34}{speed:12,.0f}{middle:8.2f}   {low:.2f} - {high:.2f}")


def compare_memory(sizes: list[int]) -> None:
    """Print the peak memory for each number of lines."""
    print(f"\n{'lines':>12}{'subwords':>14}{'MB of text':>12}{'MB before':>12}{'MB at most':>12}")
    for lines in sizes:
        with TemporaryDirectory() as folder:
            subwords = make_corpus(Path(folder), lines)
            run = [sys.executable, __file__, "--memory-of", folder]
            peaks = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout
            before, most = map(float, peaks.split())
            text = (Path(folder) / TEXT).stat().st_size / 1e6
        print(f"{lines:12,}{subwords:14,}{text:12.0f}{before:12.1f}{most:12.1f}", flush=True)


def peak_memory() -> float:
    """Return the peak memory of this process in MB."""
    # Not from getrusage, which counts the memory of the parent process too.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    assert found, "Linux only"
    return int(found[1]) * 1024 / 1e6


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--speed-lines", type=int, default=300_000, help="lines to measure speed on"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--lines", type=int, nargs="+", default=[], help="measure peak memory with so many lines"
    )
    parser.add_argument("--memory-of", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.memory_of:
        before = peak_memory()
        ours(args.memory_of, words=True)
        print(before, peak_memory())
        return
    compare_speed(args.speed_lines, args.rounds)
    if args.lines:
        compare_memory(args.lines)


if __name__ == "__main__":
    main()
