"""The files that a stage makes, by which its mark tells later whether one has changed.

A file of the same size and time of change is trusted if it is large; any other is hashed. A file
that is gone is no fault: who reads it says so.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...base.files import hash_file
from .stages import Stage, Step

#: In bytes: smaller files are hashed whenever they are checked.
SMALL = 1 << 20
#: Options of our commands and fairseq's that name files or the beginnings of files, or folders.
_NAMING = (
    *("--output", "--json", "--text", "--labels", "--model", "--held-out"),
    *("--destdir", "--directory"),
)


def hash_outputs(stage: Stage, work: Path) -> dict[str, list[Any]]:
    """Return size in bytes, time of change and SHA-256 of the files that a stage has made.

    Args:
        stage: has just ended.
        work: the folder that names of files are relative to.
    """
    names = {name for step in stage.steps for name in _list_names(step)}
    paths = {path for name in names for path in _list_files(work, name)}
    if stage.resumes:  # the mean is made when it is decoded
        checkpoints = (work / stage.log).parent.glob(stage.resumes)
        paths |= {path for path in checkpoints if not path.stem.endswith("average")}
    return {
        path.relative_to(work).as_posix(): [*_describe(path), hash_file(path)]
        for path in sorted(paths)
    }


def list_changed(files: Mapping[str, list[Any]], work: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that is not what it was.

    Args:
        files: from `hash_outputs`.
        work: see there.
    """
    changed = {}
    for name, before in files.items():
        path = work / name
        if path.is_file():
            now = _describe(path)
            trusted = now[0] > SMALL and before[:2] == now
            if not trusted and (digest := hash_file(path)) != before[-1]:
                changed[name] = digest
    return changed


def _describe(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _list_names(step: Step) -> Iterator[str]:
    """Yield what the commands of a step call the files that they write."""
    if step.output:
        yield str(step.output)
    for program, *words in step.commands:
        if program == "cp":
            *sources, folder = words
            yield from (f"{folder}/{Path(source).name}" for source in sources)
        elif program == "syncattn-corpus":
            yield words[0]
        option = ""
        for word in words:
            if word.startswith("-"):
                option = word
            elif option in _NAMING:
                yield word


def _list_files(work: Path, name: str) -> Iterator[Path]:
    """Yield the files of a folder, or those that have a name, perhaps with a suffix more."""
    path = work / name
    if Path(name).is_absolute() or not path.parent.is_dir():
        return
    for file in (path if path.is_dir() else path.parent).iterdir():
        named = path.is_dir() or path.name in (file.name, file.stem)
        if named and file.is_file() and not file.name.startswith(".") and file.suffix != ".log":
            yield file
