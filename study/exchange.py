"""Train the cells of the plan's experiment on what a parse is worth, in its order.

    python -m study.exchange prepare      # nested parts of the published text, with its dictionary
    python -m study.exchange tune --results study/results/exchange/updates.json
    python -m study.exchange run --results study/results/exchange/gpu.json

``tune`` trains one plain system with a seed that is not reported, once for each size, and writes
the number of updates for that size. ``run`` trains one cell after the other and writes each cell's
result when its training ends. It continues where it was stopped, and several processes may share
the work. With ``--cpu``, both run the plan's small exploratory experiment instead, which needs no
GPU. `study.exchange_rate` analyses the results.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_json, replacing
from syncattn_fairseq.base.locks import locked
from syncattn_fairseq.base.text import read_lines
from syncattn_lab.recipes.corpus_facts import load_corpus
from syncattn_lab.recipes.grid import find_commit, name_processor
from syncattn_lab.recipes.launch import Machines, make_training
from syncattn_lab.recipes.systems import SHARED, read_overrides

CORPUS = "multi30k_tiny_en_de"
#: The numbers of pairs of the planned experiment. The exploratory one has the first, and its half.
SIZES = (3625, 10000, 29000)
HALF = 1812
#: The seed of `tune`, which is not reported.
TUNING_SEED = 11
#: The config of each system, and the settings changed in it.
SYSTEMS: dict[str, tuple[str, dict[str, str]]] = {
    "rotary": ("rotary", {}),
    "right_tree": ("rotary_distance_tree", {}),
    "other_tree": ("rotary_distance_tree", {"model.source_trees": "another"}),
    "transformer": ("transformer", {}),
    "linear": ("rotary_distance_linear", {}),
    "dbsa": ("dbsa", {"model.positions": "rotary"}),
    "constant_decay": ("rotary_constant_gate", {}),
}
#: How many late checkpoints are averaged.
AVERAGED = 5
#: By how many nats the chosen number of updates may be worse than the best one.
WITHIN = 0.005


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


@dataclass(frozen=True)
class Design:
    """An experiment of the plan: its trainings, and how their number of updates is chosen.

    Attributes:
        groups: systems and sizes that are trained one group after the other.
        seeds: of weights and batches; all systems share them.
        tuned: the system that chooses the number of updates, with `TUNING_SEED`.
        updates: the numbers of updates of which one is chosen for each size.
        apart: how many updates the averaged checkpoints are apart: a prime, since fairseq leaves
            out a checkpoint that falls on the end of an epoch.
        cpu: whether it is trained without a GPU.
    """

    groups: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]
    seeds: tuple[int, ...]
    tuned: str
    updates: tuple[int, ...]
    apart: int
    cpu: bool

    @property
    def sizes(self) -> list[int]:
        """The numbers of pairs that are trained on, in ascending order."""
        return sorted({size for _, sizes in self.groups for size in sizes})

    def list_cells(self) -> list[Cell]:
        """List all trainings in their order: a seed has all systems before the next one begins."""
        return [
            Cell(size, system, seed)
            for systems, sizes in self.groups
            for size in sizes
            for seed in self.seeds
            for system in systems
        ]


_FIRST, _LATER = tuple(SYSTEMS)[:4], tuple(SYSTEMS)[4:]
#: The experiment that decides. Its first group alone decides, and is trained first.
PLANNED = Design(
    groups=((_FIRST, SIZES[-1:]), (_FIRST, SIZES[:-1]), (_LATER, SIZES[::-1])),
    seeds=(31, 32, 33, 34, 35),
    tuned="transformer",
    updates=(1970, 3940, 5910, 7880),
    apart=197,
    cpu=False,
)
#: What can be trained without a GPU. Half of the pairs say what a difference is worth in pairs.
EXPLORATORY = Design(
    groups=((("rotary", "right_tree", "other_tree"), SIZES[:1]), (("rotary",), (HALF,))),
    seeds=(31, 32, 33),
    tuned="rotary",
    updates=(395, 553, 711, 869, 1027, 1185),
    apart=79,
    cpu=True,
)


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
    for size in (HALF, *SIZES):
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


def make_command(work: Path, cell: Cell, updates: int, design: Design) -> list[str]:
    """Return the command that trains one cell of an experiment.

    Args:
        work: the folder of the corpora, data and checkpoints.
        cell: the training.
        updates: the number of updates.
        design: the experiment.
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
        "checkpoint.save_interval_updates": design.apart,
        "checkpoint.keep_interval_updates": -1 if cell.seed == TUNING_SEED else AVERAGED,
        "dataset.disable_validation": True,
        "optimization.max_update": updates,
    }
    [command] = make_training(
        system, system.load(settings), Machines(cpu=design.cpu), settings
    ).commands
    return list(command)


def _find_data(work: Path, size: int) -> Path:
    return work / "data-bin" / f"{CORPUS}.{size}"


def _find_checkpoints(work: Path, cell: Cell) -> Path:
    return work / "checkpoints" / f"{CORPUS}.{cell.size}" / cell.system / str(cell.seed)


def average(folder: Path, updates: int, apart: int) -> Path:
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


def _train(work: Path, cell: Cell, updates: int, design: Design) -> None:
    subprocess.run(make_command(work, cell, updates, design), check=True)


def tune(work: Path, results: Path, design: Design) -> None:
    """Find the best number of updates of each size that has none yet, and write them to a file."""
    known = _read(results)
    for size in design.sizes:
        if any(row["size"] == size for row in known):
            continue
        cell = Cell(size, design.tuned, TUNING_SEED)
        _train(work, cell, max(design.updates), design)
        nats: dict[int, float] = {}
        for updates in design.updates:
            checkpoint = average(_find_checkpoints(work, cell), updates, design.apart)
            sums, sizes = measure(checkpoint, _find_data(work, size), "valid")
            nats[updates] = sum(sums) / sum(sizes)
        row = {"size": size, "updates": choose_updates(nats), "valid": nats}
        known.append(row)
        _write(results, known)


def run(work: Path, results: Path, design: Design) -> None:
    """Train the cells that the results lack; write each cell's result when its training ends.

    A cell that another process trains is left to that process.

    Raises:
        DataError: the number of updates of a size is unknown, or cells of the experiment, or of the
            same seed, are of another device.
    """
    name = "updates_cpu.json" if design.cpu else "updates.json"
    updates = {row["size"]: row["updates"] for row in _read(results.with_name(name))}
    if missing := [str(size) for size in design.sizes if size not in updates]:
        raise DataError(f"{', '.join(missing)} pairs: no number of updates; run tune first")
    device = _name_device(design.cpu)
    record = {"device": device, "commit": find_commit()}
    for cell in design.list_cells():
        with suppress(_TrainedElsewhere), _claiming(work, cell):
            known = _read(results)
            if any((row["size"], row["system"], row["seed"]) == cell.key for row in known):
                continue
            # Without a GPU, sessions on several machines may share the work, seed by seed.
            same = [row for row in known if not design.cpu or row["seed"] == cell.seed]
            if others := {row["device"] for row in same} - {device}:
                seed = f" with seed {cell.seed}" if design.cpu else ""
                raise DataError(
                    f"{results}: has cells{seed} of {', '.join(others)}; name another file"
                )
            row = _train_and_measure(work, cell, updates[cell.size], design)
            with locked(work / "results.lock", lambda: None):
                _write(results, [*_read(results), row | record])


def _train_and_measure(work: Path, cell: Cell, updates: int, design: Design) -> dict[str, Any]:
    """Train a cell; return its row of the results, without device and commit."""
    _train(work, cell, updates, design)
    checkpoint = average(_find_checkpoints(work, cell), updates, design.apart)
    sums, sizes = measure(checkpoint, _find_data(work, cell.size), "test")
    return asdict(cell) | {"updates": updates, "nats": sums, "subwords": sizes}


class _TrainedElsewhere(Exception):
    """Another process is training the cell."""


@contextmanager
def _claiming(work: Path, cell: Cell) -> Iterator[None]:
    """Keep other processes from a cell; raise `_TrainedElsewhere` if one is training it."""

    def refuse() -> None:
        raise _TrainedElsewhere

    name = f"{cell.size}.{cell.system}.{cell.seed}.lock"
    with locked(work / "checkpoints" / name, refuse):
        yield


def _name_device(cpu: bool) -> str:
    """Return the name of the GPU, or of the processor after ``CPU,``."""
    if cpu:
        return f"CPU, {name_processor()}"
    import torch

    if not torch.cuda.is_available():
        raise DataError("there is no GPU; --cpu runs the exploratory experiment, which needs none")
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
    made.add_argument(
        "--cpu",
        action="store_true",
        help="run the small exploratory experiment, which needs no GPU",
    )
    args = made.parse_args(words)
    if args.step == "prepare":
        prepare(args.work)
    elif args.results is None:
        made.error(f"{args.step}: give --results")
    else:
        design = EXPLORATORY if args.cpu else PLANNED
        {"tune": tune, "run": run}[args.step](args.work, args.results, design)


if __name__ == "__main__":
    main()
