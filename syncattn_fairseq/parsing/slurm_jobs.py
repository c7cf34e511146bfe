"""Parse shards in arrays of Slurm jobs, through submitit."""

import json
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from ..base.errors import DataError
from ..base.files import hash_file, read_json, replacing
from .executors import Executor, Progress
from .shards import Shard, ShardTask

# The file that lists the running jobs.
_JOBS = "jobs.json"
# Jobs of an array: a cluster refuses more by default (MaxArraySize 1001).
_MOST_JOBS = 1000
# Shards of a job, before there is another array: a job has a limit of time.
_MOST_SHARDS = 10
# How often a job may reach its time limit and be queued again; submitit requires a number.
_TIME_LIMITS = 1000
# Seconds between two looks at the jobs, and until the files of one that has ended must be visible.
_LOOK = 2.0
_DELAY = 60.0


def make_slurm_executor(workers: int | None, options: Mapping[str, str | bool]) -> Executor:
    """Return an executor that parses shards in an array of Slurm jobs.

    There is a job for each shard if there are few. Of more than a thousand, a job parses several,
    one after the other; of more than ten thousand, there are several arrays.

    Args:
        workers: how many jobs may run at the same time; None: all.
        options: options of ``sbatch``, by their long names; ``time`` is 4 hours by default.
    """

    def execute(task: ShardTask, shards: Sequence[Shard], progress: Progress) -> None:
        try:
            import submitit
        except ImportError:
            raise DataError(
                "Slurm jobs need submitit; pip install 'syncattn-fairseq[slurm]'"
            ) from None
        try:
            executor = submitit.SlurmExecutor(task.shards / "jobs", max_num_timeout=_TIME_LIMITS)
        except RuntimeError:
            raise DataError(
                "Slurm jobs need the programs srun and sbatch; run this command on a machine of "
                "the cluster, or without Slurm"
            ) from None
        jobs = _find_running(task.shards, shards)
        missing = [shard for shard in shards if shard not in jobs]
        arrays = plan_arrays(missing, workers)
        for array in arrays:
            executor.update_parameters(
                job_name="syncattn-parse",
                time=240,
                array_parallelism=workers // len(arrays) if workers else len(array),
                additional_parameters=options,
            )
            try:
                started = executor.map_array(task, array)
            except submitit.core.utils.FailedJobError as error:
                raise DataError(f"sbatch: {' '.join(str(error).split())}") from None
            for parsed, job in zip(array, started, strict=True):
                jobs |= dict.fromkeys(parsed, job)
            _remember(task.shards, jobs)
        _wait(jobs, task.shards, progress)

    return execute


def plan_arrays(shards: Sequence[Shard], workers: int | None) -> list[list[list[Shard]]]:
    """Divide shards into arrays of Slurm jobs; a job is a list of shards to parse in order.

    Args:
        shards: the shards to parse.
        workers: how many jobs may run at the same time, which is also the most arrays; None: all.
    """
    arrays = ceil(len(shards) / (_MOST_JOBS * _MOST_SHARDS))
    arrays = max(1, min(arrays, workers or arrays))
    size = max(1, ceil(len(shards) / (_MOST_JOBS * arrays)))
    jobs = [[*shards[begin : begin + size]] for begin in range(0, len(shards), size)]
    return [jobs[begin : begin + _MOST_JOBS] for begin in range(0, len(jobs), _MOST_JOBS)]


def _by_id(jobs: Iterable[Any]) -> list[Any]:
    """Return the jobs without repetition: several shards may have the same job."""
    return [*{job.job_id: job for job in jobs}.values()]


def _remember(folder: Path, jobs: Mapping[Shard, Any]) -> None:
    """Record the running jobs, and a hash of their work, since the jobs outlive this process."""
    ids = {shard.number: job.job_id for shard, job in jobs.items()}
    with replacing(folder / _JOBS) as temporary:
        temporary.write_text(json.dumps({"for": _hash_purpose(folder), "jobs": ids}), "utf-8")


def _find_running(folder: Path, shards: Sequence[Shard]) -> dict[Shard, Any]:
    """Return the running jobs of an earlier run by the shards they parse; cancel its other jobs."""
    from submitit import SlurmJob

    try:
        earlier = read_json(folder / _JOBS)
        jobs: dict[int, Any] = {
            int(number): SlurmJob(folder / "jobs", name) for number, name in earlier["jobs"].items()
        }
        same = earlier["for"] == _hash_purpose(folder)
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    living = _list_queued(job.job_id for job in jobs.values()) if jobs else set()
    jobs = {number: job for number, job in jobs.items() if job.job_id in living}
    useful = {shard: jobs.pop(shard.number) for shard in shards if same and shard.number in jobs}
    still = {job.job_id for job in useful.values()}  # for other shards than those finished
    for job in _by_id(jobs.values()):
        if job.job_id not in still:
            job.cancel(check=False)
    return useful


def _hash_purpose(folder: Path) -> str | None:
    """Return the hash of the manifest, which has the current text, parser and settings."""
    manifest = folder / "manifest.json"
    return hash_file(manifest) if manifest.exists() else None


def _list_queued(jobs: Iterable[str]) -> set[str]:
    """Return the ids of waiting and running jobs, or all ids if Slurm cannot say."""
    ids = set(jobs)
    arrays = ",".join({job.split("_")[0] for job in ids})
    command = ["squeue", "--noheader", "--array", "--format=%i", f"--jobs={arrays}"]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode and "Invalid job id" not in answer.stderr:
        return ids
    return set(answer.stdout.split())


def _wait(jobs: Mapping[Shard, Any], folder: Path, progress: Progress) -> None:
    """Wait until every job has written its shards; raise `DataError` if jobs end without them."""
    running, gone, lost = dict(jobs), dict[Shard, float](), list[Any]()
    try:
        while running:
            for shard in [each for each in running if each.folder(folder).exists()]:
                progress(shard.words)
                del running[shard]
            living = _list_queued(job.job_id for job in running.values()) if running else set()
            for shard, job in list(running.items()):
                if job.job_id in living:
                    gone.pop(shard, None)
                elif time.monotonic() - gone.setdefault(shard, time.monotonic()) > _DELAY:
                    lost.append(running.pop(shard))
            if running:
                time.sleep(_LOOK)
    except BaseException:
        for job in _by_id(running.values()):
            job.cancel(check=False)
        raise
    if lost:
        lost = _by_id(lost)
        raise DataError(
            f"{len(lost)} Slurm jobs ended without finishing their shards, the first is "
            f"{lost[0].job_id} (log: {lost[0].paths.stderr}); run the command again to continue: "
            "finished shards are kept"
        )
