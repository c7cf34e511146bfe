#!/usr/bin/env python3
"""Train every system with two processes that lack parses, labels and links by turns.

fairseq sums what the processes log by its names, and waits for ever for a name that only one of
them logs. Each training makes a few updates of one sentence per process, on a small generated
corpus where half of the sentences have no parse and another half no links, once for each update and
once with ``--update-freq 2``, and validates. The script ends with status 1 if a training does not
end.

Usage: ``python scripts/two_ranks.py [NAME ...]``; without names, all systems. It prints the losses
that each system had.
"""

import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import syncattn_fairseq
from syncattn_fairseq.base.option_fields import flag
from syncattn_fairseq.cli import preprocess
from syncattn_fairseq.criterions.terms import TERMS
from syncattn_lab.synthetic.generated_corpus import write_corpus
from tests.systems import SYSTEMS, weights_of

#: Seconds after which a training that has not ended is taken to wait for ever.
PATIENCE = 600
UPDATES = 6


def make_data(folder: Path) -> Path:
    """Write and binarise a corpus that lacks some links and some parses; return its folder."""
    write_corpus(folder, {"train": 32, "valid": 6}, seed=1)
    options = ["-s=en", "-t=de", "--joined-dictionary", f"--destdir={folder / 'bin'}"]
    for split in ("train", "valid"):
        for path in folder.glob(f"{split}.*"):
            kind = path.name.split(".")[1]
            if kind in ("heads", "labels", "align"):
                lines = path.read_text().splitlines()
                lacking = slice(1, None, 2) if kind == "align" else slice(2, None, 2)
                lines[lacking] = [""] * len(lines[lacking])
                path.write_text("\n".join([*lines, ""]))
        options.append(f"--{split}pref={folder / split}")
    preprocess.main(options)
    return folder / "bin"


def list_words(data: Path, system: str, frequency: int) -> list[str]:
    """Return the command line that trains a system, with ``frequency`` batches per update."""
    arch, options = SYSTEMS[system]
    weights = weights_of(system) | ({} if "rnn" in arch else {"guided_alignment_weight": 0.1})
    words = [
        *("fairseq-train", str(data), "--task=translation_with_syntax", "--cpu", "--no-save"),
        *(f"--user-dir={Path(syncattn_fairseq.__file__).parent}", f"--arch={arch}"),
        *("--criterion=label_smoothed_cross_entropy_with_syntax", "--label-smoothing=0.1"),
        *("--optimizer=adam", "--lr=0.001", "--batch-size=1", f"--max-update={UPDATES}"),
        *("--log-format=json", "--log-interval=1", "--seed=1", "--load-alignments"),
        *(f"--update-freq={frequency}", "--missing-parses=ignore", "--distributed-world-size=2"),
        *("--distributed-no-spawn", "--ddp-backend=legacy_ddp", "--distributed-backend=gloo"),
    ]
    for name, value in {**options, **weights}.items():
        words += [flag(name)] if value is True else [f"{flag(name)}={value}"]
    return words


def train(words: Sequence[str], rank: int, port: int, log: Path) -> int:
    """Start a training process with this rank; return the process id.

    Args:
        words: the command and its arguments.
        rank: the rank among the processes.
        port: the port where the processes meet.
        log: the file for the output.
    """
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        with log.open("w") as file:
            for stream in (1, 2):
                os.dup2(file.fileno(), stream)
        meeting = f"--distributed-init-method=tcp://127.0.0.1:{port}"
        sys.argv = [*words, meeting, f"--distributed-rank={rank}"]
        from fairseq_cli.train import cli_main

        cli_main()
        status = 0
    except SystemExit as end:
        status = 0 if end.code is None else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def train_both(words: Sequence[str], folder: Path) -> str:
    """Train a system with two processes; return why the training failed, or ``""``."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = {train(words, rank, port, folder / f"{rank}.log") for rank in (0, 1)}
    end, failed = time.monotonic() + PATIENCE, False
    while running and time.monotonic() < end and not failed:
        for child in [*running]:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                running.discard(child)
                failed = failed or status != 0
        time.sleep(0.05)
    for child in running:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if failed:
        return [*(folder / "0.log").read_text().splitlines(), "?"][-2]
    return "the processes wait for each other" if running else ""


def read_losses(log: Path) -> tuple[int, list[str]]:
    """Return the number of logged updates, and the names of the logged losses, from a log."""
    lines = [line for line in log.read_text().splitlines() if "train_inner" in line]
    steps: list[dict[str, Any]] = [json.loads(line[line.index("{") :]) for line in lines]
    return len(steps), [name for name in TERMS if any(name in step for step in steps)]


def main(names: Sequence[str]) -> int:
    """Train the named systems, by default all; print the updates and losses of each."""
    if unknown := {*names} - {*SYSTEMS}:
        sys.exit(f"{min(unknown)}: no such system; choose from {', '.join(SYSTEMS)}")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        data = make_data(Path(folder))
        for system in names or SYSTEMS:
            for frequency in (1, 2):
                fault = train_both(list_words(data, system, frequency), Path(folder))
                updates, losses = read_losses(Path(folder) / "0.log")
                if not fault and updates != UPDATES:
                    fault = f"{updates} updates"
                failures += bool(fault)
                result = fault or f"{updates} updates, {', '.join(losses) or 'no loss'}"
                print(f"{system}, --update-freq {frequency}: {result}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
