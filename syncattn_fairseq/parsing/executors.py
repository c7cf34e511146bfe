"""Where shards are parsed: in processes of this machine, or as jobs of Slurm."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeAlias

from ..base.errors import DataError
from .shards import Shard, ShardTask

Progress: TypeAlias = Callable[[int], object]
"""Is told how many more words have been parsed."""

Executor: TypeAlias = Callable[[ShardTask, Sequence[Shard], Progress], None]
"""Parses shards; raises `DataError` if that fails. Finished shards are kept then."""

# How often, in seconds.
_REPORT = 0.2
_LOOK = 2.0

# How long, in seconds, what a job has written may take to be seen on this machine.
_DELAY = 60.0


def local(workers: int) -> Executor:
    """Return what parses shards in processes of this machine.

    Args:
        workers: how many there are. Each loads the parser once and takes shard after shard.
    """

    def execute(task: ShardTask, shards: Sequence[Shard], progress: Progress) -> None:
        # A forked process has imported everything already. Nothing has used CUDA before.
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        following = context.Value("i", 0)
        living: dict[Connection, Any] = {}
        try:
            for number in range(min(workers, len(shards))):
                receiver, sender = context.Pipe(duplex=False)
                arguments = (task, shards, following, number, sender, os.getpid())
                living[receiver] = context.Process(target=_work, args=arguments, daemon=True)
                living[receiver].start()
                sender.close()
            while living:
                for receiver in wait(list(living)):
                    assert isinstance(receiver, Connection)
                    try:
                        message = receiver.recv()
                    except EOFError:
                        _check(living.pop(receiver))
                        continue
                    if isinstance(message, str):
                        raise DataError(message)
                    progress(message)
        finally:
            for process in living.values():
                process.terminate()
                process.join()

    return execute


def _check(process: Any) -> None:
    process.join()
    if process.exitcode:
        cause = f"signal {-process.exitcode}" if process.exitcode < 0 else "see the error above"
        memory = "; if memory ran out, use fewer --workers" if process.exitcode == -9 else ""
        raise DataError(
            f"a worker process died ({cause}){memory}; run the command again to go on, finished "
            "shards are kept"
        )


def _work(
    task: ShardTask,
    shards: Sequence[Shard],
    following: Any,
    number: int,
    sender: Connection,
    parent: int,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    waiting = 0
    sent = time.monotonic()

    def report(words: int) -> None:
        nonlocal waiting, sent
        if os.getppid() != parent:
            os._exit(1)  # it was killed: nobody waits for our work
        waiting += words
        if time.monotonic() - sent > _REPORT:
            sender.send(waiting)
            waiting, sent = 0, time.monotonic()

    try:
        parser = task.source.open(number)
        while True:
            with following.get_lock():
                index = following.value
                following.value += 1
            if index >= len(shards):
                sender.send(waiting)
                return
            task.parse(shards[index], parser, report)
    except (DataError, OSError) as error:
        sender.send(str(error))


def slurm(workers: int | None, options: Mapping[str, str | bool]) -> Executor:
    """Return what parses shards as an array of Slurm jobs, one for each.

    Args:
        workers: how many may run at the same time; None: all.
        options: of ``sbatch``, by their long names.

    Raises:
        DataError: submitit or Slurm is missing, or the time is not in minutes.
    """
    rest = dict(options)
    minutes = rest.pop("time", "240")
    if not str(minutes).isdecimal():
        raise DataError(f"--slurm time={minutes}: give a number of minutes")
    try:
        import submitit
    except ImportError:
        raise DataError(
            "--executor slurm needs submitit; pip install 'syncattn-fairseq[slurm]'"
        ) from None

    def execute(task: ShardTask, shards: Sequence[Shard], progress: Progress) -> None:
        try:
            executor = submitit.SlurmExecutor(task.shards / "jobs")
        except RuntimeError:
            raise DataError(
                "--executor slurm needs Slurm's programs, srun and sbatch; run this on a machine "
                "of the cluster, or use --executor local"
            ) from None
        executor.update_parameters(
            job_name="syncattn-parse",
            time=int(minutes),
            array_parallelism=workers or len(shards),
            additional_parameters=rest,
        )
        try:
            jobs = executor.map_array(task, shards)
        except submitit.core.utils.FailedJobError as error:
            raise DataError(f"sbatch: {' '.join(str(error).split())}") from None
        _wait(dict(zip(shards, jobs, strict=True)), task.shards, progress)

    return execute


def _wait(jobs: dict[Shard, Any], folder: Path, progress: Progress) -> None:
    """Wait for jobs, whose work is done when their shards are there."""
    gone: dict[Shard, float] = {}
    failed: list[Any] = []
    try:
        while jobs:
            queued = _queued(jobs.values())
            for shard, job in list(jobs.items()):
                if shard.folder(folder).exists():
                    progress(shard.words)
                    del jobs[shard]
                elif job.job_id in queued:
                    gone.pop(shard, None)
                elif time.monotonic() - gone.setdefault(shard, time.monotonic()) > _DELAY:
                    failed.append(jobs.pop(shard))
            if jobs:
                time.sleep(_LOOK)
    finally:
        for job in jobs.values():
            job.cancel(check=False)
    if failed:
        raise DataError(
            f"{len(failed)} jobs ended without their shards, {failed[0].job_id} first; see "
            f"{failed[0].paths.stderr} and run the command again to go on, finished shards are kept"
        )


def _queued(jobs: Collection[Any]) -> set[str]:
    """Return the ids of jobs that wait or run, or of all of them if Slurm cannot say."""
    arrays = ",".join({job.job_id.split("_")[0] for job in jobs})
    command = ["squeue", "--noheader", "--array", "--format=%i", f"--jobs={arrays}"]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode and "Invalid job id" not in answer.stderr:
        return {job.job_id for job in jobs}
    return set(answer.stdout.split())
