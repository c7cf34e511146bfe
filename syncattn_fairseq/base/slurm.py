"""Submit jobs to Slurm through submitit, and ask which of them wait or run."""

import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from .errors import DataError

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
        DataError: submitit or Slurm is missing.
    """
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
    executor.update_parameters(time=240, additional_parameters=options, **parameters)
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
