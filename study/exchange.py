"""Train the cells of the plan's experiment on what a parse is worth, in its order.

    python -m study.exchange prepare      # nested parts of the published text, with its dictionary
    python -m study.exchange tune --results study/results/exchange/updates.json
    python -m study.exchange run --results study/results/exchange/gpu.json

``tune`` trains the plain Transformer with a seed that is not reported, once for each size, and
writes how many updates that size has. ``run`` trains one cell after the other and writes each as it
ends; it goes on where it was stopped. What a cell has is what the plan's analysis reads,
`study.exchange_rate`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_json, replacing
from syncattn_fairseq.base.text import read_lines
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.launch import Machines, make_training
from syncattn_lab.recipes.systems import SHARED, read_overrides

CORPUS = "multi30k_tiny_en_de"
SIZES = (3625, 10000, 29000)
SEEDS = (31, 32, 33, 34, 35)
#: Of `tune`; not reported.
TUNING_SEED = 11
#: By name: the config and what is changed in it.
SYSTEMS: dict[str, tuple[str, dict[str, str]]] = {
    "rotary": ("rotary", {}),
    "right_tree": ("rotary_distance_tree", {}),
    "other_tree": ("rotary_distance_tree", {"model.source_trees": "another"}),
    "transformer": ("transformer", {}),
    "linear": ("rotary_distance_linear", {}),
    "dbsa": ("dbsa", {"model.positions": "rotary"}),
    "constant_decay": ("rotary_constant_gate", {}),
}
#: The systems that alone decide, and are trained first.
FIRST = tuple(SYSTEMS)[:4]
#: How many late checkpoints are averaged, and how many updates they are apart: a prime, since
#: fairseq leaves out a checkpoint that falls on the end of an epoch.
AVERAGED, APART = 5, 197
#: Of which one is chosen for each size, and by how many nats the fewest may be worse than the best.
UPDATES, WITHIN = (1970, 3940, 5910, 7880), 0.005


@dataclass(frozen=True)
class Cell:
    """A training of the experiment: number of pairs, system and seed.

    Attributes:
        size: pairs of the training text.
        system: its name in `SYSTEMS`.
        seed: of weights and batches, which all systems share.
    """

    size: int
    system: str
    seed: int

    @property
    def key(self) -> tuple[int, str, int]:
        """Number of pairs, system and seed, which identify the training."""
        return self.size, self.system, self.seed


def list_cells() -> list[Cell]:
    """List all trainings of the experiment in the order in which they are run."""
    order = [(FIRST, (SIZES[-1],)), (FIRST, SIZES[:-1]), (tuple(SYSTEMS)[4:], SIZES[::-1])]
    return [
        Cell(size, system, seed)
        for systems, sizes in order
        for size in sizes
        for seed in SEEDS
        for system in systems
    ]


def choose_updates(nats: Mapping[int, float]) -> int:
    """Return the fewest updates whose validation NLL is within `WITHIN` of the lowest.

    Args:
        nats: NLL of the validation text by the number of updates.
    """
    limit = min(nats.values()) + WITHIN
    return min(updates for updates, value in nats.items() if value <= limit)


def prepare(work: Path) -> None:
    """Binarise the first pairs of the text at each size, all with the whole text's dictionary.

    The validation and the test text are the same for all sizes.
    """
    corpus, whole = work / "corpora" / CORPUS, work / "data-bin" / CORPUS
    for size in SIZES:
        data = _find_data(work, size)
        if data.exists():
            continue
        part = work / "corpora" / data.name
        for folder, name in (("pieces", "train.{}"), ("words", "train.heads.{}")):
            (part / folder).mkdir(parents=True, exist_ok=True)
            for language in ("en", "de"):
                lines = islice(read_lines(corpus / folder / name.format(language)), size)
                with replacing(part / folder / name.format(language)) as temporary:
                    temporary.write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")
        made = data.with_name(f"{data.name}.part")
        shutil.rmtree(made, ignore_errors=True)
        words = ["syncattn-preprocess", "-s=en", "-t=de", f"--destdir={made}"]
        words += [f"--srcdict={whole / 'dict.en.txt'}", "--joined-dictionary"]
        for split, texts in (("train", part), ("valid", corpus), ("test", corpus)):
            words.append(f"--{split}pref={texts / 'pieces' / split}")
            words.append(f"--{split}heads={texts / 'words' / split}")
        subprocess.run(words, check=True)
        made.rename(data)


def make_command(work: Path, cell: Cell, updates: int, cpu: bool) -> list[str]:
    """Return the command that trains one cell of the experiment.

    Args:
        work: the folder of the corpora, data and checkpoints.
        cell: the training.
        updates: the number of updates.
        cpu: whether to train without a GPU.
    """
    name, changes = SYSTEMS[cell.system]
    system = load_corpus(SHARED / CORPUS).system(name)
    settings: dict[str, Any] = read_overrides([f"{k}={v}" for k, v in changes.items()])
    settings |= {
        "task.data": str(_find_data(work, cell.size)),
        "task.fast": True,
        "common.seed": cell.seed,
        "common.fp16": False,
        "checkpoint.save_dir": str(_find_checkpoints(work, cell)),
        "checkpoint.patience": -1,
        "checkpoint.no_epoch_checkpoints": True,
        "checkpoint.save_interval": 10**6,  # epochs are a few updates
        "checkpoint.save_interval_updates": APART,
        "checkpoint.keep_interval_updates": -1 if cell.seed == TUNING_SEED else AVERAGED,
        "dataset.disable_validation": True,
        "optimization.max_update": updates,
    }
    [command] = make_training(system, system.load(settings), Machines(cpu=cpu), settings).commands
    return list(command)


def _find_data(work: Path, size: int) -> Path:
    return work / "data-bin" / f"{CORPUS}.{size}"


def _find_checkpoints(work: Path, cell: Cell) -> Path:
    return work / "checkpoints" / f"{CORPUS}.{cell.size}" / cell.system / str(cell.seed)


def average(folder: Path, updates: int, apart: int = APART) -> Path:
    """Average the last checkpoints up to a number of updates; return the new checkpoint's path.

    Where one fell on the end of an epoch, the one before counts. That is the same for all trainings
    of a size, whose epochs have the same number of updates.

    Args:
        folder: the checkpoints.
        updates: the last checkpoint that counts is of this update, or before.
        apart: how many updates they are apart.

    Raises:
        DataError: there are too few, or the last ones are missing.
    """
    found = {int(path.stem.rpartition("_")[2]): path for path in folder.glob("checkpoint_*_*.pt")}
    chosen = sorted(update for update in found if update <= updates)[-AVERAGED:]
    if len(chosen) < AVERAGED or chosen[-1] < updates - apart:
        raise DataError(f"{folder}: lacks checkpoints up to update {updates}; remove it")
    output = folder / f"average_{updates}.pt"
    paths = [str(found[update]) for update in chosen]
    subprocess.run(["syncattn-average", *paths, f"--output={output}"], check=True)
    return output


def measure(checkpoint: Path, data: Path, split: str) -> tuple[list[float], list[int]]:
    """Return each sentence's NLL, in nats, and its number of subwords, in the text's order."""
    import torch
    from torch.nn import functional as F

    from syncattn_fairseq.inference.ensemble import Ensemble

    ensemble = Ensemble(str(checkpoint), data)
    [model], task = ensemble.models, ensemble.task
    padding = task.target_dictionary.pad()
    task.load_dataset(split)
    found: dict[int, tuple[float, int]] = {}
    batches = task.get_batch_iterator(task.dataset(split), max_tokens=4096)
    for batch in batches.next_epoch_itr(shuffle=False):
        with torch.no_grad():
            scores = model(**batch["net_input"])
        logs, target = model.get_normalized_probs(scores, log_probs=True), batch["target"]
        nats = F.nll_loss(logs.mT, target, ignore_index=padding, reduction="none").sum(1)
        sizes = target.ne(padding).sum(1)
        rows = zip(batch["id"].tolist(), nats.tolist(), sizes.tolist(), strict=True)
        found |= {index: (nat, size) for index, nat, size in rows}
    ordered = [found[index] for index in sorted(found)]
    return [round(nat, 3) for nat, _ in ordered], [size for _, size in ordered]


def _train(work: Path, cell: Cell, updates: int, cpu: bool) -> None:
    subprocess.run(make_command(work, cell, updates, cpu), check=True)


def tune(work: Path, results: Path, cpu: bool) -> None:
    """Find the best number of updates of each size that has none yet, and write them to a file."""
    known = _read(results)
    for size in SIZES:
        if any(row["size"] == size for row in known):
            continue
        cell = Cell(size, "transformer", TUNING_SEED)
        _train(work, cell, max(UPDATES), cpu)
        nats: dict[int, float] = {}
        for updates in UPDATES:
            checkpoint = average(_find_checkpoints(work, cell), updates)
            sums, sizes = measure(checkpoint, _find_data(work, size), "valid")
            nats[updates] = sum(sums) / sum(sizes)
        row = {"size": size, "updates": choose_updates(nats), "valid": nats}
        known.append(row)
        _write(results, known)


def run(work: Path, results: Path, cpu: bool) -> None:
    """Train the cells that the results lack; write each cell's result when its training ends."""
    chosen = _read(results.with_name("updates.json"))
    updates = {row["size"]: row["updates"] for row in chosen}
    if missing := [str(size) for size in SIZES if size not in updates]:
        raise DataError(f"{', '.join(missing)} pairs: no number of updates; run tune first")
    known = _read(results)
    device = "cpu" if cpu else _name_device()
    if others := {row["device"] for row in known} - {device}:
        raise DataError(f"{results}: has cells of {', '.join(others)}; name another file")
    for cell in _list_missing(known):
        _train(work, cell, updates[cell.size], cpu)
        checkpoint = average(_find_checkpoints(work, cell), updates[cell.size])
        sums, sizes = measure(checkpoint, _find_data(work, cell.size), "test")
        row = {"size": cell.size, "system": cell.system, "seed": cell.seed}
        row |= {"updates": updates[cell.size], "device": device, "nats": sums, "subwords": sizes}
        known.append(row)
        _write(results, known)


def _list_missing(known: Sequence[Mapping[str, Any]]) -> Iterator[Cell]:
    done = {(row["size"], row["system"], row["seed"]) for row in known}
    return (cell for cell in list_cells() if cell.key not in done)


def _name_device() -> str:
    import torch

    if not torch.cuda.is_available():
        raise DataError("there is no GPU; --cpu trains without, for an experiment of its own")
    return torch.cuda.get_device_name()


def _read(path: Path) -> list[dict[str, Any]]:
    return list(read_json(path)) if path.exists() else []


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        lines = ",\n".join(json.dumps(row) for row in rows)
        temporary.write_text(f"[{lines}]\n", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> None:
    """Run the step (prepare, tune or run) that the command line names.

    ``words`` are the command's arguments; None: those of the process.
    """
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("step", choices=("prepare", "tune", "run"))
    made.add_argument("--work", type=Path, default=Path(), help="of the recipe")
    made.add_argument("--results", type=Path, help="JSON file; is continued")
    made.add_argument("--cpu", action="store_true", help="train without a GPU")
    args = made.parse_args(words)
    if args.step == "prepare":
        prepare(args.work)
    elif args.results is None:
        made.error(f"{args.step}: give --results")
    else:
        {"tune": tune, "run": run}[args.step](args.work, args.results, args.cpu)


if __name__ == "__main__":
    main()
