"""Make and fill folders completely or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import DataError, naming_full_disk
from .locks import locked, refuse_links, remove_locked

_UNFINISHED = ".unfinished"


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, whose files move into ``folder`` when the block succeeds.

    It is a hidden folder inside ``folder``, which is made if it does not exist. A run that is
    killed early leaves nothing else; if a run is killed or fails while its files are being moved,
    the next run moves the rest.

    Raises:
        DataError: another process is filling the folder, or a folder or a link is in the way.
    """
    existed = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / _UNFINISHED
    files, complete, lock = (unfinished / name for name in ("files", "complete", "lock"))
    refuse_links(unfinished)
    try:
        with locked(
            lock,
            f"{folder}: another process is writing to this folder; wait until that process ends",
        ):
            if complete.exists():
                _move(complete, folder)
                print(
                    f"{folder}: moved here the files of an earlier run that was interrupted at "
                    "its end"
                )
            shutil.rmtree(files, ignore_errors=True)
            files.mkdir()
            try:
                with naming_full_disk(folder):
                    yield files
                check_places(files, folder)
                files.rename(complete)
                _move(complete, folder)
            finally:
                if not complete.exists():  # or the next run moves what is left
                    remove_locked(lock)
    finally:
        if not existed:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


@contextmanager
def making(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, which is renamed to ``folder`` when the block succeeds.

    It is in a hidden folder beside ``folder``, which the next run removes if this one is killed.
    `DataError`: another process is making the folder, or a link is in the way.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.with_name(f".{folder.name}{_UNFINISHED}")
    files, lock = unfinished / "files", unfinished / "lock"
    refuse_links(unfinished)
    with locked(
        lock, f"{folder}: another process is writing this folder; wait until that process ends"
    ):
        try:
            shutil.rmtree(files, ignore_errors=True)
            files.mkdir()
            with naming_full_disk(folder):
                yield files
            files.rename(folder)
        finally:
            remove_locked(lock)


def check_places(files: Path, folder: Path) -> None:
    """Check that no folder or link in ``folder`` has the name of a file that is to move there.

    Raises:
        DataError: a folder or a link is in the place of a file.
    """
    for place in (folder / path.name for path in files.iterdir()):
        refuse_links(place)
        if place.is_dir():
            raise DataError(
                f"{place}: a folder has the name of a file that this command writes; move the "
                "folder away"
            )


def _move(complete: Path, folder: Path) -> None:
    for path in sorted(complete.iterdir()):
        os.replace(path, folder / path.name)
    complete.rmdir()
