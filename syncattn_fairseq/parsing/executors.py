"""Where shards are parsed: in processes on this machine, or as Slurm jobs."""

import json
import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeAlias

from ..base.errors import DataError
from ..base.files import hash_file, read_json, replacing
from ..base.slurm import open_executor, queued, submitted
from ..base.slurm import wait as wait_for_jobs
from ..base.worker_pool import end_with_parent
from .shards import Shard, ShardTask

Progress: TypeAlias = Callable[[int], object]
"""Called with the number of words parsed since the last call."""

Executor: TypeAlias = Callable[[ShardTask, Sequence[Shard], Progress], None]
"""Parses shards; raises `DataError` if that fails, but keeps finished shards."""

# The file that lists the running jobs.
_JOBS = "jobs.json"


def make_local_executor(workers: int, report_every: float = 0.2) -> Executor:
    """Return an executor that parses shards in processes on this machine.

    A single shard is parsed in this process, since starting another takes seconds.

    Args:
        workers: how many processes. Each loads the parser once and takes shard after shard.
        report_every: seconds between each process's progress reports.
    """

    def execute(task: ShardTask, shards: Sequence[Shard], progress: Progress) -> None:
        if len(shards) == 1:
            task.parse(shards[0], task.source.open(0), progress)
            return
        # Forking this process would be faster but might deadlock: libraries have started threads.
        context: Any = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["__main__", *task.source.modules()])
        following = context.Value("i", 0)
        living: dict[Connection, Any] = {}
        try:
            for number in range(min(workers, len(shards))):
                receiver, sender = context.Pipe(duplex=False)
                arguments = (task, shards, following, number, sender, report_every)
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
            f"a worker process died ({cause}){memory}; run the command again to continue, finished "
            "shards are kept"
        )


def _work(
    task: ShardTask,
    shards: Sequence[Shard],
    following: Any,
    number: int,
    sender: Connection,
    report_every: float,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops us
    end_with_parent()
    waiting = 0
    sent = time.monotonic()

    def report(words: int) -> None:
        nonlocal waiting, sent
        waiting += words
        if time.monotonic() - sent > report_every:
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


def make_slurm_executor(workers: int | None, options: Mapping[str, str | bool]) -> Executor:
    """Return an executor that parses shards as an array of Slurm jobs, one per shard.

    Args:
        workers: how many jobs may run at the same time; None: all.
        options: options of ``sbatch``, by their long names.
    """

    def execute(task: ShardTask, shards: Sequence[Shard], progress: Progress) -> None:
        executor = open_executor(
            task.shards / "jobs",
            options,
            job_name="syncattn-parse",
            array_parallelism=workers or len(shards),
        )
        jobs = _find_running(task.shards, shards)
        missing = [shard for shard in shards if shard not in jobs]
        started = submitted(executor.map_array, task, missing) if missing else []
        jobs |= zip(missing, started, strict=True)
        _remember(task.shards, jobs)
        _wait(jobs, task.shards, progress)

    return execute


def _remember(folder: Path, jobs: Mapping[Shard, Any]) -> None:
    """Note which jobs run and what for, since they outlive this process if it is killed."""
    ids = {shard.number: job.job_id for shard, job in jobs.items()}
    with replacing(folder / _JOBS) as temporary:
        temporary.write_text(json.dumps({"for": _hash_purpose(folder), "jobs": ids}), "utf-8")


def _find_running(folder: Path, shards: Sequence[Shard]) -> dict[Shard, Any]:
    """Return an earlier run's jobs that are still running and useful; cancel the others."""
    from submitit import SlurmJob

    try:
        earlier = read_json(folder / _JOBS)
        jobs: dict[int, Any] = {
            int(number): SlurmJob(folder / "jobs", name) for number, name in earlier["jobs"].items()
        }
        same = earlier["for"] == _hash_purpose(folder)
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    living = queued(job.job_id for job in jobs.values()) if jobs else set()
    jobs = {number: job for number, job in jobs.items() if job.job_id in living}
    useful = {shard: jobs.pop(shard.number) for shard in shards if same and shard.number in jobs}
    for job in jobs.values():
        job.cancel(check=False)
    return useful


def _hash_purpose(folder: Path) -> str | None:
    """Return a fingerprint of the current text, parser and settings."""
    manifest = folder / "manifest.json"
    return hash_file(manifest) if manifest.exists() else None


def _wait(jobs: Mapping[Shard, Any], folder: Path, progress: Progress) -> None:
    """Wait for jobs; a job is done when its shard is there."""
    running = dict(jobs)

    def is_done(shard: Shard) -> bool:
        if not shard.folder(folder).exists():
            return False
        progress(shard.words)
        del running[shard]
        return True

    try:
        lost = wait_for_jobs(jobs, is_done)
    except BaseException:
        for job in running.values():
            job.cancel(check=False)
        raise
    if lost:
        first = jobs[lost[0]]
        raise DataError(
            f"{len(lost)} jobs ended without their shards, {first.job_id} first; see "
            f"{first.paths.stderr}; run the command again to continue, finished shards are kept"
        )
