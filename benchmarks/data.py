"""Measure what many sentence pairs cost beside fairseq: binarising, learning subwords, loading.

The text is a block of generated lines (:func:`.scaling.write_corpus`), repeated; heads are of both
sides. All are run one after the other, and each is printed with its ratio to fairseq's:

- ``fairseq-preprocess`` without heads, and ``syncattn-preprocess`` with them: CPU seconds of all
  processes, and the peak memory of the largest;
- ``syncattn-bpe learn`` on all lines, and on a tenth of them (``--max-lines``);
- what a loader takes for a sentence: fairseq's dataset, a model without parses, one that is
  trained on them, and one whose encoder reads random or other sentences' trees; and how long it
  takes to start, the first time, when these are drawn, and later.

With ``--ours``, the plugin's commands run alone, and no trees are drawn: for numbers of lines at
which fairseq-preprocess takes an hour.

Usage: ``python benchmarks/data.py --lines 1000000`` and ``... --lines 10000000 --ours``.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.scaling import find_command, write_corpus  # noqa: E402
from benchmarks.start import megabytes, run  # noqa: E402
from syncattn_fairseq.base.text_tables import markdown_table  # noqa: E402

#: Different lines; more are copies.
BLOCK = 100_000
#: Sentences that are loaded.
LOADED = 20_000
#: What an encoder reads, or fairseq's own dataset, or none of both.
CONTROLS = ("random", "another")


def repeat_corpus(folder: Path, lines: int) -> None:
    """Write a random parallel text with dependency heads, made by repeating one block of lines."""
    block = folder / "block"
    block.mkdir()
    write_corpus(block, min(BLOCK, lines))
    for name in ("en", "de", "heads.en", "heads.de"):
        with (folder / f"train.{name}").open("wb") as whole:
            for _ in range(-(-lines // BLOCK)):
                with (block / f"train.{name}").open("rb") as part:
                    shutil.copyfileobj(part, whole)
    shutil.rmtree(block)


def measure(line: str, folder: Path) -> tuple[float, float, float]:
    """Run a command; return CPU seconds, elapsed seconds and memory in MB."""
    began = time.monotonic()
    used = run(find_command(line), folder)
    return used.ru_utime + used.ru_stime, time.monotonic() - began, megabytes(used)


def load(folder: Path, reads: str) -> Any:
    """Load the training text as for the training of a model with the inputs named by ``reads``."""
    from dataclasses import replace

    from omegaconf import OmegaConf

    import syncattn_fairseq.plugin  # noqa: F401  (registers the task)
    from syncattn_fairseq.data.fields import TREE_DISTANCES, SourceFields
    from syncattn_fairseq.tasks.translation_with_syntax import (
        TranslationWithSyntaxConfig,
        TranslationWithSyntaxTask,
    )

    cfg = OmegaConf.structured(TranslationWithSyntaxConfig)
    cfg.data, cfg.train_subset, cfg.gen_subset = str(folder), "train", "test"
    cfg.dataset_impl, cfg.required_seq_len_multiple, cfg.cpu = None, 1, True
    task = TranslationWithSyntaxTask.setup_task(cfg)
    if reads in CONTROLS:
        field = replace(TREE_DISTANCES, control=reads)
        task.fields |= SourceFields(fields=frozenset([field]))
    elif reads == "nothing":
        task.models_read, task.criteria_read = [False], [False]
    task.load_dataset("train")
    dataset = task.datasets["train"]
    return dataset.dataset if reads == "fairseq" else dataset


def time_loading(folder: Path, kinds: tuple[str, ...]) -> list[list[str]]:
    """Measure what loading the text costs for models with different inputs; return table rows."""
    rows = []
    first = 0.0
    for reads in kinds:
        began = time.process_time()
        dataset = load(folder, reads)
        started = time.process_time() - began
        began = time.process_time()
        step = max(1, len(dataset) // LOADED)
        count = sum(1 for i in islice(range(0, len(dataset), step), LOADED) if dataset[i])
        each = 1e6 * (time.process_time() - began) / count
        first = first or each
        rows.append([reads, f"{started:.1f}", f"{each:.0f}", f"{each / first:.2f}"])
        print(*rows[-1], sep="  ", flush=True)
    return rows


def main() -> None:
    """Measure binarising, learning subwords and loading, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--ours", action="store_true", help="without fairseq-preprocess and trees")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    made = f"-s en -t de --trainpref train --workers {args.workers} --destdir"
    learn = "syncattn-bpe learn --vocab-size 500 --input train.en --model"
    commands = {
        "fairseq-preprocess, no heads": f"fairseq-preprocess {made} theirs",
        "syncattn-preprocess, heads of both sides": f"syncattn-preprocess {made} ours",
        "syncattn-bpe learn, all lines": f"{learn} all --max-lines {args.lines}",
        "syncattn-bpe learn, a tenth": f"{learn} tenth --max-lines {args.lines // 10}",
    }
    kinds = ("fairseq", "nothing", "heads")
    if args.ours:
        del commands["fairseq-preprocess, no heads"]
    else:
        kinds += (*CONTROLS, *CONTROLS)
    rows = [["command", "CPU s", "ratio", "elapsed s", "MB", "ratio"]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repeat_corpus(folder, args.lines)
        found: dict[str, tuple[float, float, float]] = {}
        for command, line in commands.items():
            cpu, elapsed, size = found[command] = measure(line, folder)
            program = "bpe" if "bpe" in command else "preprocess"
            base = next(numbers for name, numbers in found.items() if program in name)
            row = [command, f"{cpu:.1f}", f"{cpu / base[0]:.2f}", f"{elapsed:.0f}", f"{size:.0f}"]
            rows.append([*row, f"{size / base[2]:.2f}"])
            print(*rows[-1], sep="  ", flush=True)
        for path in (folder / "theirs").glob("*.[bit][idx][nxt]"):
            same = path.read_bytes() == (folder / "ours" / path.name).read_bytes()
            print(f"{path.name}: {'the same' if same else 'DIFFERENT'}")
        loaded = time_loading(folder / "ours", kinds)
    print(f"\n{args.lines:,} lines\n\n{markdown_table(rows)}\n")
    print(markdown_table([["a model that reads", "start, s", "µs a sentence", "ratio"], *loaded]))


if __name__ == "__main__":
    main()
