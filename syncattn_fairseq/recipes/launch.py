"""One training on any number of processes, with the batch that its config asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import DataError
from .stages import line
from .systems import load_system

#: Tokens of a process's batch below which long sentences would not fit.
SMALLEST_BATCH = 256
#: Where the processes of a job meet. Jobs may share a machine, so each has a port of its own.
PORT = "$((29500 + SLURM_JOB_ID % 1000))"


@dataclass(frozen=True)
class Machines:
    """Where to train.

    Attributes:
        processes: on each machine; each has a GPU unless ``cpu``.
        nodes: machines; more than one are Slurm's.
        cpu: train without GPUs, and so in single precision.
        slurm: long options of sbatch, as ``partition=gpu``; None: on this machine.
    """

    processes: int = 1
    nodes: int = 1
    cpu: bool = False
    slurm: Sequence[str] | None = None


def batch(config: dict[str, Any], processes: int) -> dict[str, Any]:
    """Return settings by which some processes together take the batch of one.

    A config is written for one process: ``max_tokens × update_freq`` tokens are an update. With P
    of them, each takes ``update_freq' = ceil(max_tokens × update_freq / (P max_tokens))`` batches
    of ``max_tokens' = ceil(max_tokens × update_freq / (P update_freq'))`` tokens.

    Raises:
        DataError: so many processes leave too little to each.
    """
    most = config["dataset"]["max_tokens"]
    together = most * config["optimization"].get("update_freq", [1])[0]
    steps = math.ceil(together / (processes * most))
    tokens = math.ceil(together / (processes * steps))
    if tokens < SMALLEST_BATCH <= most:
        raise DataError(
            f"a batch of {together:,} tokens leaves {tokens} to each of {processes} processes; "
            f"take at most {together // SMALLEST_BATCH}"
        )
    settings: dict[str, Any] = {"optimization.update_freq": f"[{steps}]"}
    if tokens < most:  # validation stays as it is; longer training pairs are left out
        settings |= {"dataset.max_tokens": tokens, "dataset.max_tokens_valid": most}
        settings |= {"task.max_source_positions": tokens, "task.max_target_positions": tokens}
    return settings


def training(path: Path, plugin: Path, machines: Machines, overrides: Sequence[str]) -> str:
    """Return the line that trains a system.

    Args:
        path: its config.
        plugin: the folder ``syncattn_fairseq``.
        machines: where.
        overrides: ``SECTION.OPTION=VALUE``, of the user.
    """
    config = load_system(path, overrides)
    processes = machines.processes * machines.nodes
    settings = {"common.user_dir": plugin} | batch(config, processes)
    if machines.cpu:
        settings |= {"common.cpu": "true", "common.fp16": "false"}
    words = ["--config-dir", str(path.parent.resolve()), "--config-name", path.stem]
    changed = [*overrides, *(f"{name}={value}" for name, value in settings.items())]
    words += [f"++{change}" for change in changed]  # whether the config has it or not
    if machines.slurm is not None:
        return job(machines, config["checkpoint"]["save_dir"], _on_each_node(machines, words))
    if machines.processes == 1:
        return line("fairseq-hydra-train", *words)
    return line("torchrun", f"--nproc-per-node={machines.processes}", *_worker(words))


def _worker(words: Sequence[str]) -> Iterator[str]:
    yield from ("-m", "syncattn_fairseq.recipes.worker", *words)


def _on_each_node(machines: Machines, words: Sequence[str]) -> str:
    head = '"$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"'
    return (
        f"srun torchrun --nnodes={machines.nodes} --nproc-per-node={machines.processes} "
        f'--rdzv-backend=c10d --rdzv-id="$SLURM_JOB_ID" --rdzv-endpoint={head}:{PORT} '
        + line(*_worker(words))
    )


def job(machines: Machines, logs: str | Path, command: str) -> str:
    """Return the line that waits for a job of Slurm, which is queued again when preempted.

    Args:
        machines: where it runs.
        logs: folder for what it prints.
        command: a line of bash.
    """
    gpus = [] if machines.cpu else [f"--gpus-per-node={machines.processes}"]
    return line(
        *("sbatch", "--wait", "--requeue", "--open-mode=append"),
        f"--output={logs}/slurm-%j.log",
        *(f"--nodes={machines.nodes}", "--ntasks-per-node=1", *gpus),
        *(f"--{option}" for option in machines.slurm or ()),
        *("--wrap", command),
    )
