"""Locks between processes, released when a process ends in any way."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, count
from pathlib import Path

from .errors import DataError
from .systems import lock_file


@contextmanager
def locked(path: Path, busy: str | Callable[[], object], shared: bool = False) -> Iterator[int]:
    """Hold a lock file during a block; yield its descriptor, which child processes may inherit.

    The file is made, with its folder, if it does not exist; the block may remove both
    (`remove_locked`). If another process is in it, ``busy`` is a `DataError`'s message, or what
    to call before waiting. Several may hold a ``shared`` lock.
    """
    for attempt in count():
        try:
            with suppress(FileExistsError):
                path.parent.mkdir(parents=True)
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
        except FileNotFoundError:
            if attempt == 100:
                raise  # nobody can make it
            continue  # removed before we opened it
        try:
            if lock(descriptor, busy, shared):
                yield descriptor
                return
        finally:
            os.close(descriptor)


@contextmanager
def claiming(*paths: Path) -> Iterator[None]:
    """Lock files to write during a block, to keep other processes from writing the same files.

    The block may take hours. A hidden file beside each is locked meanwhile, and removed at the end.
    Errors of the system name the file, not the hidden one. `DataError`: another process is
    writing one.
    """
    with ExitStack() as stack:
        for path in {path.resolve() for path in paths}:
            own = path.with_name(f".{path.name}.lock")
            busy = (
                f"{path}: another process is writing this file; wait until that process ends, or "
                "stop it"
            )
            try:
                stack.enter_context(locked(own, busy))
            except OSError as error:
                error.filename = str(path)
                raise
            stack.callback(own.unlink, missing_ok=True)
        yield


def lock(descriptor: int, busy: str | Callable[[], object], shared: bool = False) -> bool:
    """Lock an open file; return False if the file was removed in the meantime.

    ``busy`` and ``shared`` are those of `locked`.
    """
    try:
        lock_file(descriptor, shared)
    except BlockingIOError:
        if isinstance(busy, str):
            raise DataError(busy) from None
        busy()
        lock_file(descriptor, shared, wait=True)
    except OSError as error:
        # There are no locks, or, on NFS, none of a folder, which cannot be opened for writing.
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EBADF):
            raise
    return os.fstat(descriptor).st_nlink > 0


def can_share_locks() -> bool:
    """Return whether locks of `multiprocessing` work here, which a pool of processes needs."""
    if os.access("/dev/shm", os.W_OK):  # without what makes locks, whose import takes time
        return True
    import multiprocessing

    try:
        multiprocessing.get_context().Lock()
    except OSError:
        return False
    return True


def refuse_links(*paths: Path) -> None:
    """Raise `DataError` if a path to write or remove is, or contains, a symbolic link.

    A link may lead anywhere. Files, and folders with all that is in them, need not exist.
    """
    for path in paths:
        inside = (Path(folder, name) for folder, *lists in os.walk(path) for name in chain(*lists))
        for place in chain([path], inside):
            if place.is_symlink():
                raise DataError(
                    f"{place}: is a symbolic link where this command writes its own file; remove "
                    "the link"
                )


def remove_locked(lock: Path) -> None:
    """Remove the folder of a lock file held by this process, and all contents of the folder.

    The lock goes last: without it, other processes may enter. Then their folder stays.
    """
    for path in list(lock.parent.iterdir()):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path != lock:
            path.unlink()
    lock.unlink()
    with suppress(OSError):
        lock.parent.rmdir()
