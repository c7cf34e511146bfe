"""Submit jobs to Slurm through submitit, and ask which of them wait or run."""

import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from .errors import DataError

#: A time limit in Slurm's notation: MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, or
#: DAYS-HOURS with or without :MINUTES and :SECONDS.
_TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")

#: How often a job may reach its time limit and be queued again; submitit requires a number.
_TIME_LIMITS = 1000

# Seconds between two looks at the jobs, and until the files of one that has ended must be visible.
_LOOK = 2.0
_DELAY = 60.0

T = TypeVar("T")


def open_executor(folder: Path, options: Mapping[str, str | bool], **parameters: Any) -> Any:
    """Return submitit's executor.

    Args:
        folder: for submitit's files about the jobs.
        options: of ``sbatch``, by their long names; ``time`` is 4 hours by default.
        parameters: of submitit.

    Raises:
        DataError: submitit or Slurm is missing, or the time is not in Slurm's notation.
    """
    rest = dict(options)
    minutes = minutes_of(str(rest.pop("time", "240")))
    try:
        import submitit
    except ImportError:
        raise DataError("Slurm jobs need submitit; pip install 'syncattn-fairseq[slurm]'") from None
    try:
        executor = submitit.SlurmExecutor(folder, max_num_timeout=_TIME_LIMITS)
    except RuntimeError:
        raise DataError(
            "Slurm jobs need srun and sbatch; run this on a machine of the cluster, or without "
            "Slurm"
        ) from None
    executor.update_parameters(time=minutes, additional_parameters=rest, **parameters)
    return executor


def submitted(submit: Callable[..., Any], *arguments: Any) -> Any:
    """Call a method of the executor that submits jobs, and return its result.

    Raises:
        DataError: ``sbatch`` refuses; the error repeats its message.
    """
    import submitit

    try:
        return submit(*arguments)
    except submitit.core.utils.FailedJobError as error:
        raise DataError(f"sbatch: {' '.join(str(error).split())}") from None


def minutes_of(time: str) -> int:
    """Return a time limit in minutes, rounded up.

    Raises:
        DataError: the time is not in Slurm's notation.
    """
    found = _TIME.fullmatch(time)
    if not found:
        raise DataError(f"time={time}: give minutes, hours:minutes:seconds or days-hours")
    days, *parts = found.groups()
    given = [int(part) for part in parts if part is not None]
    if days is not None:
        hours, minutes, seconds = [*given, 0, 0][:3]
        hours += 24 * int(days)
    else:
        hours, minutes, seconds = {1: [0, *given, 0], 2: [0, *given], 3: given}[len(given)]
    return 60 * hours + minutes + (seconds > 0)


def queued(jobs: Iterable[str]) -> set[str]:
    """Return the ids of those jobs that wait or run, or all of them if Slurm cannot say."""
    ids = set(jobs)
    arrays = ",".join({job.split("_")[0] for job in ids})
    command = ["squeue", "--noheader", "--array", "--format=%i", f"--jobs={arrays}"]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode and "Invalid job id" not in answer.stderr:
        return ids
    return set(answer.stdout.split())


def wait(jobs: Mapping[T, Any], is_done: Callable[[T], bool]) -> list[T]:
    """Wait until each job is done, or has left the queue without being done.

    Args:
        jobs: submitit's, by what they do.
        is_done: whether a job has left its result; called at each look.

    Returns:
        Those that are not done.
    """
    left, gone, lost = dict(jobs), dict[T, float](), list[T]()
    while True:
        left = {task: job for task, job in left.items() if not is_done(task)}
        waiting = queued(job.job_id for job in left.values()) if left else set()
        for task, job in list(left.items()):
            if job.job_id in waiting:
                gone.pop(task, None)
            elif time.monotonic() - gone.setdefault(task, time.monotonic()) > _DELAY:
                lost.append(task)
                del left[task]
        if not left:
            return lost
        time.sleep(_LOOK)
