"""Functions and flags missing from some operating systems.

macOS has all but how many cores a process may use. Windows has no locks, pipes that do not wait
and alarms; models are loaded and served there, and no more.
"""

import errno
import os

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Flag of ``os.open``: never wait for a pipe's writer. It is 0 where the system has no such flag.
NO_WAITING = getattr(os, "O_NONBLOCK", 0)
#: Flag of ``os.open``: refuse a symbolic link. It is 0 where the system has no such flag.
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


def count_cores() -> int:
    """Return the number of CPU cores available to this process, or of all cores if unknown."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def lock_file(descriptor: int, shared: bool = False, wait: bool = False) -> None:
    """Lock an open file until it is closed.

    Args:
        descriptor: the file descriptor of the open file.
        shared: whether others may hold a shared lock, too.
        wait: whether to wait for another process that holds the lock.

    Raises:
        BlockingIOError: another process holds the lock, and ``wait`` is False.
        OSError: the system or the file system has no locks.
    """
    if fcntl is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
