"""Steps as Slurm jobs."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import IO, Any

from ...base.errors import DataError
from ...base.files import open_file, read_text_file, replacing
from ...base.slurm import open_executor, queued, submitted, wait
from .processes import Failed, search_path
from .stages import Step

# Seconds; longer than Slurm waits between SIGTERM and SIGKILL (KillWait, 30 by default).
_KILLED_WITHIN = 300.0


@dataclass(frozen=True)
class Work:
    """What each process of a job does: run a command, and start it again after a preemption.

    Attributes:
        step: one command, which gets ``RANK``, ``WORLD_SIZE`` and so on in its environment.
        folder: folder to run in.
    """

    step: Step
    folder: Path

    def __call__(self) -> None:
        """Run the command; raise `Failed` if it fails."""
        from submitit.helpers import TorchDistributedEnvironment

        TorchDistributedEnvironment().export(set_cuda_visible_devices=False, overwrite=True)
        path = search_path(os.environ.get("PATH", ""))
        variables = {**os.environ, "PATH": path}
        [command] = self.step.commands
        if self.step.output is None:
            self._run(command, variables, None)
            return
        with replacing(self.folder / self.step.output) as temporary, temporary.open("wb") as file:
            self._run(command, variables, file)

    def _run(
        self, command: tuple[str, ...], variables: Mapping[str, str], output: IO[bytes] | None
    ) -> None:
        # Slurm announces a preemption to all processes: submitit requeues the job, and the command
        # continues until it is stopped.
        ignored = signal.SIGUSR2
        status = subprocess.run(
            command,
            cwd=self.folder,
            env=variables,
            stdout=output,
            preexec_fn=lambda: signal.signal(ignored, signal.SIG_IGN),
        ).returncode
        if status == -signal.SIGTERM:
            # Slurm is stopping the job, perhaps to requeue it, and will stop this process next. An
            # error before that would mark the job as failed.
            time.sleep(_KILLED_WITHIN)
        if status:
            raise Failed(f"status {status}")

    def checkpoint(self) -> Any:
        """Return what submitit submits again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def run(
    step: Step,
    work: Path,
    base: Path,
    log: IO[bytes],
    on_line: Callable[[str], object],
    ended: Event,
) -> None:
    """Run a step as a job and wait for it; if an earlier recipe started the job, just wait for it.

    Args:
        step: what to run; its ``job`` has options of sbatch.
        work: folder to run in.
        base: path without suffix of submitit's folder (``.jobs``) and the job's id (``.job``);
            each step has its own.
        log: gets what the first process prints.
        on_line: called with each line of it.
        ended: stops the waiting; the job continues.

    Raises:
        Failed: the job failed.
        DataError: Slurm is missing or refuses the job, or another job has the same ``base``.
    """
    folder, note = base.with_suffix(".jobs"), base.with_suffix(".job")
    job = _started_before(folder, note, step)
    if job is None:
        options = dict(step.job or {})
        known = {
            name: options.pop(name) for name in ("nodes", "ntasks_per_node") if name in options
        }
        executor = open_executor(
            folder, options, job_name="syncattn-recipe", stderr_to_stdout=True, **known
        )
        job = submitted(executor.submit, Work(step, work))
        tasks = int(known.get("nodes", 1)) * int(known.get("ntasks_per_node", 1))
        with replacing(note) as temporary:
            temporary.write_text(f"{job.job_id}\n{tasks}\n{step}\n", encoding="utf-8")
    on_line(f"job {job.job_id}")
    seen = 0

    def is_done(_: str) -> bool:
        nonlocal seen
        done = _done(job)
        seen = _follow(job.task(0).paths.stdout, seen, log, on_line)
        return done

    def pause(seconds: float) -> None:
        if ended.wait(seconds):
            raise Failed(f"the recipe ended; job {job.job_id} continues")

    lost = wait({job.job_id: job}, is_done, pause)
    note.unlink(missing_ok=True)
    if lost:
        raise Failed(f"job {job.job_id} vanished from the queue")
    if error := job.exception():
        reasons = re.findall(r"^[\w.]+: (.*)", str(error), re.MULTILINE) or [str(error)]
        raise Failed(f"job {job.job_id}: {reasons[-1].strip()}")


def _started_before(folder: Path, note: Path, step: Step) -> Any:
    """Return the job that an earlier recipe started, if it still runs or is done."""
    if not note.exists():
        return None
    import submitit

    job_id, tasks, command = read_text_file(note).split("\n", 2)
    if command.rstrip("\n") != str(step):
        if queued([job_id]):
            raise DataError(
                f"{note}: job {job_id} runs another command for this stage; wait for it, or "
                "scancel it"
            )
        return None
    job: Any = submitit.SlurmJob(folder, job_id, tasks=range(int(tasks)))
    return job if _done(job) or queued([job_id]) else None


def _done(job: Any) -> bool:
    tasks = [job.task(number) for number in range(job.num_tasks)]
    return all(task.paths.result_pickle.exists() for task in tasks)


def _follow(path: Path, seen: int, log: IO[bytes], on_line: Callable[[str], object]) -> int:
    """Copy what is new in a file to a log; return how many bytes have been read."""
    if not path.exists():
        return seen
    with open_file(path) as file:
        file.seek(seen)
        lines, end, _ = file.read().rpartition(b"\n")
    for text in (lines + end).splitlines():
        log.write(text + b"\n")
        on_line(text.decode(errors="replace"))
    log.flush()
    return seen + len(lines + end)
