"""Run the stages of a recipe: log, skip what is done, stop at what fails."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path
from typing import IO, Any

from ..base.errors import DataError
from ..base.files import replacing
from ..parsing.eda import EDA, KYTEA
from . import jobs
from .display import Display
from .processes import Failed, Processes, search_path
from .stages import Stage, Step, programs_of, unset_variables

#: Where to get external programs.
PLACES = {
    "kytea": f"install {KYTEA}",
    "eda": f"install {EDA}",
    "fast_align": "install fast_align, https://github.com/clab/fast_align",
}
#: A line that says why a command failed.
_FAULT = re.compile(r"\b(\w*Error|error|fatal|usage)\b.*:", re.IGNORECASE)


@dataclass(frozen=True)
class Runner:
    """Runs stages.

    Attributes:
        work: folder to run in.
        processes: what starts commands.
        display: shows their progress.
        again: whether to repeat stages that are already done.
        facts: facts about this run, stored with finished stages.
    """

    work: Path
    processes: Processes
    display: Display
    again: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    def run(
        self,
        stages: Sequence[Stage],
        locks: Iterable[int] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Run stages in order.

        Args:
            stages: what to run.
            locks: open files that stay locked until the last process ends.
            environment: variables for their commands.

        Raises:
            DataError: a command failed (the message says where its output is), or a stage was done
                with other settings.
        """
        for stage in stages:
            if self.is_done(stage):
                continue
            base = self.work / stage.log
            done = base.with_suffix(".done")
            self._begin(stage, base, done)
            with (
                self.display.stage(stage.title, stage.updates) as bar,
                base.with_suffix(".log").open("ab") as log,
            ):
                for step in stage.steps:
                    self._step(stage, step, log, bar.told, environment or {}, locks)
            commands = [str(step) for step in stage.steps]
            kept = {"settings": stage.settings, **self.facts, "commands": commands}
            with replacing(done) as temporary:
                temporary.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")

    def is_done(self, stage: Stage) -> bool:
        """Tell whether a stage is done already.

        Raises:
            DataError: it was begun or done with other settings.
        """
        done = self.work / stage.log.with_suffix(".done")
        if self.again:
            return False
        for mark in (done, done.with_suffix(".begun")):
            if mark.exists():
                before = _settings_of(mark)
                if stage.settings is None or before == stage.settings:
                    return mark is done
                if not _continues(before, stage):
                    raise DataError(
                        f"{stage.title}: {mark.suffix[1:]} before with other settings: "
                        f"{_difference(before, stage.settings)}; take another --work, or "
                        f"--from {stage.name} to start over with these"
                    )
                return False
        return False

    def _begin(self, stage: Stage, base: Path, done: Path) -> None:
        """Remove what is no longer true when a stage begins."""
        base.parent.mkdir(parents=True, exist_ok=True)
        if stage.resumes:
            begun = done.with_suffix(".begun")
            redone = self.again and done.exists()
            if redone or (begun.exists() and not _continues(_settings_of(begun), stage)):
                for old in (base.with_suffix(".log"), *base.parent.glob(stage.resumes)):
                    old.unlink(missing_ok=True)
            with replacing(begun) as temporary:
                kept = {"settings": stage.settings}
                temporary.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        for mark in (done, *(base.parent.glob(stage.undoes) if stage.undoes else ())):
            mark.unlink(missing_ok=True)

    def _step(
        self,
        stage: Stage,
        step: Step,
        log: IO[bytes],
        told: Callable[[str], object],
        environment: Mapping[str, str],
        locks: Iterable[int],
    ) -> None:
        log.write(f"$ {step}\n".encode())
        log.flush()
        last = fault = ""

        def hear(text: str) -> None:
            nonlocal last, fault
            last = text.strip() or last
            if _FAULT.search(text):
                fault = text.strip()
            told(text)

        try:
            if step.job is None:
                self.processes.run(step, self.work, log, hear, environment, locks)
            else:
                base = self.work / stage.log
                jobs.run(step, self.work, base, log, hear, self.processes.ended)
        except Failed as failed:
            said = fault or last or "it said nothing"
            raise DataError(
                f"{stage.title}: a command failed ({failed}): {said} (full output: {log.name}); "
                "fix the cause, then run the same command again to continue"
            ) from None


def select(stages: Sequence[Stage], first: str | None, last: str | None) -> list[Stage]:
    """Return the stages from one to another, both included.

    Raises:
        DataError: there is no stage of that name, or the first comes after the last.
    """
    names = list(dict.fromkeys(stage.name for stage in stages))
    for name in (first, last):
        if name and name not in names:
            raise DataError(f"no stage {name!r}; choose from {', '.join(names)}")
    start = names.index(first) if first else 0
    end = names.index(last) if last else len(names) - 1
    if start > end:
        raise DataError(f"--from {first} comes after --to {last}; stages: {', '.join(names)}")
    return [stage for stage in stages if start <= names.index(stage.name) <= end]


def check(stages: Sequence[Stage]) -> None:
    """Check that everything that stages need exists, before the first one runs.

    Raises:
        DataError: a program is missing, or a variable has no value.
    """
    path = search_path(os.environ.get("PATH", ""))
    steps = [step for stage in stages for step in stage.steps]
    for name in (name for step in steps for name in unset_variables(step)):
        raise DataError(f"{name}: set this variable; a command of the recipe needs it")
    for program in programs_of(stages):
        if not shutil.which(program, path=path):
            raise DataError(f"{program}: no such program; {PLACES.get(program, 'install it')}")


@contextmanager
def locked(path: Path, waits: Callable[[], object], shared: bool = False) -> Iterator[int]:
    """Lock a file, creating it if needed; wait while others hold the lock.

    Args:
        path: the file; it is not removed.
        waits: called before waiting.
        shared: whether others may hold a shared lock at the same time.

    Yields:
        the open file. Processes that inherit it keep it locked while they live.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with path.open("a") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            waits()
            fcntl.flock(file, kind)
        yield file.fileno()


def _settings_of(done: Path) -> Mapping[str, Any]:
    try:
        return json.loads(done.read_text(encoding="utf-8"))["settings"] or {}
    except (ValueError, KeyError, TypeError):  # an empty file, from an earlier version
        raise DataError(f"{done}: cannot be read; remove it to do this stage again") from None


def _continues(before: Mapping[str, Any], stage: Stage) -> bool:
    """Tell whether a stage can continue what was begun or done with the settings before."""
    now = stage.settings or {}
    changed = _changed(before, now)

    def limit(settings: Mapping[str, Any], name: str) -> float:
        value = settings.get(name)
        if not isinstance(value, int | float | None):
            return nan  # neither more nor less than any other
        return value if value is not None and value > 0 else inf

    return {*changed} <= {*stage.limits} and all(limit(now, n) > limit(before, n) for n in changed)


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say which settings differ, the first few of them."""
    names = _changed(before, now)
    shown = [f"{name} was {before.get(name)}, is {now.get(name)}" for name in names[:3]]
    return ", ".join([*shown, *(["..."] if len(names) > 3 else [])])
