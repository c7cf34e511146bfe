"""Run the stages of a recipe: write logs, skip finished stages, stop at the first failure.

A finished stage leaves a mark, a file with the checksums of the files that it made and of the
user's own files that it read. A file that is gone is no fault: the stage that reads it says so.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf, nan
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import hash_file, read_json, replacing
from syncattn_fairseq.parsing.external import EDA, KYTEA

from .display import Display
from .processes import Failed, Processes, search_path
from .stages import Stage, is_own, list_files

#: How to install external programs, by name.
INSTALLATION = {
    "kytea": f"install {KYTEA}",
    "eda": f"install {EDA}",
}
#: Bytes up to which files are always hashed; larger ones are unchanged if size and time are.
SMALL = 1 << 20
#: A line that probably says why a command failed.
_FAULT = re.compile(r"\b(\w*Error|error|fatal|usage)\b.*:", re.IGNORECASE)


@dataclass(frozen=True)
class Runner:
    """Runs the stages of a recipe in the recipe's folder, and skips finished stages.

    Attributes:
        again: whether to repeat stages that were done by an earlier run.
        provenance: facts about the code and the hardware, stored in the marks of finished stages.
        finished: the ``log`` of each stage that this run has finished.
    """

    work: Path
    processes: Processes
    display: Display
    again: bool = False
    provenance: Mapping[str, Any] = field(default_factory=dict)
    finished: set[Path] = field(default_factory=set)

    def run(
        self,
        stages: Sequence[Stage],
        locks: Iterable[int] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Run the stages that are not done, in order, with additional environment variables.

        ``locks`` are open files that stay locked until the last process ends. `DataError`: a
        command failed (the message names the log), or a stage was done with other settings.
        """
        for stage in stages:
            if self.is_done(stage):
                continue
            base = self.work / stage.log
            done = base.with_suffix(".done")
            for earlier in stage.after:
                self._check_files(self.work / earlier.with_suffix(".done"))
            self._begin(stage, base, done)
            with (
                self.display.stage(stage.title, stage.updates) as show,
                base.with_suffix(".log").open("ab") as log,
            ):
                for step in stage.steps:
                    log.write(f"$ {step}\n".encode())
                    log.flush()
                    output = _Output(show)
                    try:
                        self.processes.run(step, self.work, log, output, environment or {}, locks)
                    except Failed as failure:
                        raise DataError(
                            f"{stage.title}: a command failed ({failure}): {output.reason} (full "
                            f"output: {log.name}); fix the cause, then run the same command again "
                            "to continue"
                        ) from None
            commands = [str(step) for step in stage.steps]
            time = datetime.now(UTC).isoformat()
            made = {"made": time, **self.provenance, "commands": commands}
            made["files"] = hash_files(stage.makes, self.work)
            self._mark(done, stage, {**made, "read": hash_files(_list_own(stage), self.work)})
            self.finished.add(stage.log)

    def is_done(self, stage: Stage) -> bool:
        """Tell whether a stage is done already.

        `DataError`: the stage was begun or done with other settings; a file that it made has
        changed; or it could be continued, but its input files were made again since.
        """
        if self.again:
            return stage.log in self.finished
        done = self.work / stage.log.with_suffix(".done")
        begun = done.with_suffix(".begun")
        mark = next((mark for mark in (done, begun) if mark.exists()), None)
        if mark is None:
            return False
        before, same = self._compare(mark, stage)
        _check_mark(mark, stage, before, same)
        if same:
            self._check_files(mark)
            self.check_read(stage)
        return same and mark is done and before == (stage.settings or {})

    def _check_files(self, mark: Path) -> None:
        """Raise `DataError` if a file of a finished stage has changed since the stage finished."""
        files = _read_mark(mark)["files"] if mark.exists() else {}
        changed = next(find_changed(files, self.work), None)
        if changed:
            raise DataError(
                f"{self.work / changed}: has changed since its stage finished ({mark}); put the "
                "earlier file back, or make the file again with --from "
                f"{mark.stem.partition('-')[0]}"
            )

    def check_read(self, stage: Stage) -> None:
        """Raise `DataError` if a user's own file has changed since a finished stage read it."""
        mark = self.work / stage.log.with_suffix(".done")
        files = _read_mark(mark)["read"] if mark.exists() else {}
        changed = next(find_changed(files, self.work), None)
        if changed:
            raise DataError(
                f"{changed}: has changed since the recipe read this file ({mark}), so everything "
                "made from it is of another text; put the earlier file back, choose another "
                f"--work, or make everything again with --from {mark.stem.partition('-')[0]}"
            )

    def _compare(self, mark: Path, stage: Stage) -> tuple[Mapping[str, Any], bool]:
        """Return the settings in a stage's mark file, and whether its inputs are still the same."""
        content = _read_mark(mark)
        times = self._after(stage).items()
        same = all(content["after"].get(name) == time for name, time in times)
        return content.get("settings") or {}, same

    def _after(self, stage: Stage) -> dict[str, str | None]:
        marks = {str(log): self.work / log.with_suffix(".done") for log in stage.after}
        return {
            name: _read_mark(mark).get("made") if mark.exists() else None
            for name, mark in marks.items()
        }

    def _mark(self, mark: Path, stage: Stage, values: Mapping[str, Any]) -> None:
        content = {"settings": stage.settings, "after": self._after(stage), **values}
        with replacing(mark) as temporary:
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def _begin(self, stage: Stage, base: Path, done: Path) -> None:
        """Remove the marks and files of an earlier run that a new run of a stage makes invalid."""
        base.parent.mkdir(parents=True, exist_ok=True)
        if stage.resumes:
            begun = done.with_suffix(".begun")
            redone = self.again and done.exists()
            if begun.exists():
                before, same = self._compare(begun, stage)
                redone = redone or not same or not _continues(before, stage)
            if redone:
                for old in (stage.log.with_suffix(".log"), *list_files(self.work, stage.makes)):
                    (self.work / old).unlink(missing_ok=True)
            self._mark(begun, stage, {})
        done.unlink(missing_ok=True)


class _Output:
    """Collects from a command's lines why it may fail: the last error, or else the last line."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show, self._fault, self._last = show, "", "it said nothing"

    @property
    def reason(self) -> str:
        return self._fault or self._last

    def __call__(self, text: str) -> None:
        self._last = text.strip() or self._last
        if _FAULT.search(text):
            self._fault = text.strip()
        self._show(text)


def select_stages(stages: Sequence[Stage], first: str | None, last: str | None) -> list[Stage]:
    """Return the stages from ``first`` to ``last``, both included; None: without such a limit.

    `DataError`: there is no stage of this name, or the first comes after the last.
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


def list_missing_programs(stages: Sequence[Stage]) -> dict[str, str]:
    """Return how to get each program that stages need and this machine lacks, by program."""
    path = search_path(os.environ.get("PATH", ""))
    programs = [program for stage in stages for program in stage.programs]
    commands = (words for stage in stages for step in stage.steps for words in step.commands)
    programs += [words[0] for words in commands if not is_own(words)]
    return {
        program: f"no such program; {INSTALLATION.get(program, 'install it')}"
        for program in dict.fromkeys(programs)
        if not shutil.which(program, path=path)
    }


def _list_own(stage: Stage) -> list[Path]:
    """List the inputs of a stage outside the recipe's folder, which are the user's own files."""
    return [path for path in stage.reads if path.is_absolute()]


def _read_mark(mark: Path) -> dict[str, Any]:
    try:
        content = read_json(mark)
    except ValueError:
        content = None
    if (
        not isinstance(content, dict)
        or not isinstance(content.get("settings"), dict | None)
        or not isinstance(content.get("after"), dict)
        or not all(_are_sums(content.setdefault(name, {})) for name in ("files", "read"))
    ):
        raise DataError(f"{mark}: cannot be read; remove this file to run the stage again")
    return content


def _are_sums(files: Any) -> bool:
    """Tell whether an entry of a mark file has the form of the checksums from `hash_files`."""
    return isinstance(files, dict) and all(isinstance(f, list) and f for f in files.values())


def _check_mark(mark: Path, stage: Stage, before: Mapping[str, Any], same: bool) -> None:
    """Raise `DataError` if a stage with this mark file can be neither skipped nor continued."""
    way_out = f"take another --work, or --from {stage.name} to start over"
    if not _continues(before, stage):
        raise DataError(
            f"{stage.title}: {mark.suffix[1:]} before with other settings: "
            f"{_difference(before, stage.settings or {})}; {way_out} with these"
        )
    if not same and stage.resumes:
        raise DataError(
            f"{stage.title}: {mark.suffix[1:]} before with data that was made again since; "
            f"{way_out}"
        )


def _continues(before: Mapping[str, Any], stage: Stage) -> bool:
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
    names = _changed(before, now)
    changes = [f"{name} was {before.get(name)}, is {now.get(name)}" for name in names[:3]]
    return ", ".join([*changes, *(["..."] if len(names) > 3 else [])])


def hash_files(declared: Iterable[Path], work: Path) -> dict[str, list[Any]]:
    """Return size in bytes, time of change and SHA-256 of each declared file that exists.

    Args:
        declared: paths or patterns of files, as in `.stages.Step`.
        work: the folder that the paths are relative to.
    """
    return {
        path.as_posix(): [*_describe(work / path), hash_file(work / path)]
        for path in list_files(work, declared)
    }


def find_changed(files: Mapping[str, list[Any]], work: Path) -> Iterator[str]:
    """Yield each file in ``files`` (from `hash_files`) that still exists but has changed."""
    for name, before in files.items():
        path = work / name
        if path.is_file():
            now = _describe(path)
            trusted = now[0] > SMALL and before[:2] == now
            if not trusted and hash_file(path) != before[-1]:
                yield name


def _describe(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]
