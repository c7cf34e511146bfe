"""Folders that are filled whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .files import locked

_UNFINISHED = ".unfinished"


@contextmanager
def filling(folder: Path, say: Callable[[str], None] = print) -> Iterator[Path]:
    """Give an empty folder; what is in it goes to ``folder`` when the block succeeds.

    It is a hidden folder inside ``folder``. A run that is killed before it was complete leaves
    nothing else; the next one moves to ``folder`` what a killed one had completed.

    Args:
        folder: made, with those above it, if it is not there.
        say: is told what is left of a killed run and completed now.

    Raises:
        DataError: another process fills the folder.
    """
    existed = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / _UNFINISHED
    files, complete = unfinished / "files", unfinished / "complete"
    try:
        with locked(unfinished / "lock", f"{folder}: another process is filling it; wait for it"):
            if complete.exists():
                _move(complete, folder)
                say(f"{folder}: completed, which a run that was killed had not the time to do")
            shutil.rmtree(files, ignore_errors=True)
            files.mkdir()
            try:
                yield files
                files.rename(complete)
                _move(complete, folder)
            finally:
                shutil.rmtree(unfinished)
    finally:
        if not existed and not any(folder.iterdir()):
            folder.rmdir()


def _move(complete: Path, folder: Path) -> None:
    for path in sorted(complete.iterdir()):
        os.replace(path, folder / path.name)
    complete.rmdir()
