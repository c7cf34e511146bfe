"""Run the cells of a table in parallel, and record their results."""

from __future__ import annotations

import os
import platform
import subprocess
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import syncattn_fairseq
from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import read_json
from syncattn_fairseq.base.locks import locked
from syncattn_fairseq.base.systems import count_cores
from syncattn_fairseq.base.text import read_lines

from ..evaluation.results_file import pack_counts, record
from .cell import Cell
from .cell_results import read_scores, read_test_nll, read_training
from .corpus_facts import Corpus
from .launch import Machines
from .places import PIECES, WORDS, folder
from .run import Runner, list_missing_programs
from .stages import Stage

if TYPE_CHECKING:
    import numpy as np

#: Most threads of a process: models small enough for a CPU gain nothing from more.
MOST_THREADS = 8


@dataclass(frozen=True)
class Grid:
    """The trainings of a results table with their stages; ``jobs`` of them run at the same time."""

    cells: Mapping[Cell, Sequence[Stage]]
    runner: Runner
    jobs: int
    results: Path

    def run_after(self, preparation: Sequence[Stage], corpus: Corpus) -> DataError | None:
        """Prepare the corpus and run all trainings; return an error about failed ones, or None.

        `DataError`: a program is missing, or the preparation failed.
        """
        runner = self.runner
        stages = [*preparation, *(stage for each in self.cells.values() for stage in each)]
        left = [stage for stage in stages if not runner.is_done(stage)]
        if missing := list_missing_programs(left):
            raise DataError("; ".join(f"{name}: {fault}" for name, fault in missing.items()))
        path = runner.work / "logs" / corpus.name / "lock"

        def announce() -> None:
            runner.display.say(
                f"== {corpus.name}: waiting for another recipe, which prepares this corpus"
            )

        if not all(map(runner.is_done, preparation)):
            with locked(path, announce) as lock:
                runner.run(preparation, [lock])
        if not any(self.cells.values()):
            return None
        with locked(path, announce, shared=True) as lock:
            return self._run_cells(lock)

    def _run_cells(self, lock: int) -> DataError | None:
        """Run all cells and return an error about the failed cells, or None.

        A failing cell does not stop the others. ``lock`` is an open file that stays locked until
        the last process ends.
        """
        environments = list_environments(next(iter(self.cells)).machines, self.jobs)
        here = threading.local()  # each thread has an environment of its own

        def begin() -> None:
            here.environment = environments.pop(0)

        def run(cell: Cell, stages: Sequence[Stage]) -> None:
            self._run_cell(cell, stages, lock, here.environment)

        pool = ThreadPoolExecutor(self.jobs, initializer=begin)
        running = {pool.submit(run, *item): item[0] for item in self.cells.items()}
        failures: list[str] = []
        try:
            for future in as_completed(running):
                try:
                    future.result()
                except (DataError, OSError) as error:
                    failures.append(str(error))
                    self.runner.display.say(f"== {running[future].name}: failed")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        count = f"{len(failures)} of {len(running)} trainings failed: " if len(running) > 1 else ""
        return DataError(count + "\n".join(failures)) if failures else None

    def _run_cell(
        self, cell: Cell, stages: Sequence[Stage], shared: int, environment: Mapping[str, str]
    ) -> None:
        say = self.runner.display.say
        lock = self.runner.work / cell.folder / "lock"
        with locked(
            lock,
            lambda: say(f"== {cell.name}: waiting for another recipe, which runs this training"),
        ) as own:
            self.runner.run(stages, [shared, own], environment)
            if any(stage.name == "score" for stage in stages):
                record(self.results, cell.corpus.name, [self._result(cell)])

    def _result(self, cell: Cell) -> dict[str, Any]:
        work = self.runner.work
        done = read_json(work / cell.folder / "train.done")
        # On CPUs, whose threads are named, a recipe trains in single precision.
        half = cell.settings.config["common"].get("fp16") and "threads" not in done["hardware"]
        return {
            "system": cell.row.label,
            "config": cell.row.system,
            "changes": cell.settings.own_changes,
            "seed": cell.seed,
            "overrides": dict(cell.settings.overrides),
            **read_scores(work / cell.output),
            "ngrams": pack_counts(_count_ngrams(cell, work)),
            **read_training(work / cell.folder / "train.log"),
            **read_test_nll(work / cell.output / "decode.log"),
            "subwords_per_word": measure_subwords_per_word(work, cell.corpus),
            **{k: v for k, v in (done.get("settings") or {}).items() if k == "plugin"},
            "commit": done["commit"],
            "hardware": done["hardware"],
            "precision": "half" if half else "single",
        }


def measure_subwords_per_word(work: Path, corpus: Corpus) -> float:
    """Return the mean number of target subwords per word in the validation text.

    The end of each sentence is counted as a subword, since it is predicted, and not as a word.
    """
    subwords, words = (
        read_lines(work / folder(corpus, part) / f"valid.{corpus.target}")
        for part in (PIECES, WORDS)
    )
    predicted = sum(len(line.split()) + 1 for line in subwords)
    return round(predicted / max(1, sum(len(line.split()) for line in words)), 4)


def _count_ngrams(cell: Cell, work: Path) -> np.ndarray:
    from ..evaluation.translation import count_ngrams, read_text, words_by

    score = cell.corpus.score

    def words(texts: Sequence[str]) -> Sequence[str]:
        return words_by(score["words_by"], texts) if "words_by" in score else texts

    output = [*read_lines(work / cell.output / "translations.txt")]
    references = read_text(str(work / cell.settings.references))
    return count_ngrams(words(output), words(references), score.get("tokenize", "13a"))


def list_environments(machines: Machines, jobs: int) -> list[dict[str, str]]:
    """Return the environment variables of each of ``jobs`` trainings that run at the same time.

    They share out the CPU cores and the GPUs of this machine.
    """
    cores = count_cores()
    threads = min(max(1, cores // (jobs * machines.processes)), MOST_THREADS)
    common = {} if os.environ.get("OMP_NUM_THREADS") else {"OMP_NUM_THREADS": str(threads)}
    if machines.cpu:
        return [common] * jobs
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = visible.split(",") if visible else [str(n) for n in range(torch.cuda.device_count())]
    if not names:
        return [common] * jobs
    each = machines.processes
    shares = [[names[(n * each + k) % len(names)] for k in range(each)] for n in range(jobs)]
    return [common | {"CUDA_VISIBLE_DEVICES": ",".join(share)} for share in shares]


def describe_run(machines: Machines, jobs: int) -> dict[str, str]:
    """Return the commit of the code and the hardware, to store with the results of trainings."""
    return {"commit": find_commit(), "hardware": describe_hardware(machines, jobs)}


def find_commit() -> str:
    """Return this package's git commit, with a + if files changed; without git, its version."""
    root = Path(syncattn_fairseq.__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return syncattn_fairseq.__version__

    def git(*words: str) -> str:
        process = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)
        return process.stdout.strip()

    changed = "+" if git("status", "--porcelain", "--untracked-files=no") else ""
    return (git("rev-parse", "--short", "HEAD") or syncattn_fairseq.__version__) + changed


def describe_hardware(machines: Machines, jobs: int) -> str:
    """Return a description of the processors that a training runs on."""
    count = machines.processes
    if not machines.cpu:
        import torch

        return f"{count} × {torch.cuda.get_device_name()}"
    threads = (
        os.environ.get("OMP_NUM_THREADS") or list_environments(machines, jobs)[0]["OMP_NUM_THREADS"]
    )
    return f"{name_processor()}, {count} × {threads} threads, {jobs} at a time"


def name_processor() -> str:
    """Return the model name of this machine's processor, or its architecture if unknown."""
    if Path("/proc/cpuinfo").exists():
        lines = read_lines("/proc/cpuinfo")
        names = [text.partition(": ")[2] for text in lines if text.startswith("model name")]
        if names:
            return names[0]
    return platform.processor() or platform.machine()
