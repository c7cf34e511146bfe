"""Process many lines in several processes, in order, holding few of them in memory."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from threading import Thread
from typing import Any, TypeVar

from .errors import DataError
from .locks import can_share_locks

T = TypeVar("T")
R = TypeVar("R")

#: Default number of items that are sent to a process together.
BLOCK = 1000
#: Number of blocks per process that may wait to be processed, or for their results to be read.
AHEAD = 3

_work: Callable[[Any], Any]


def map_in_order(
    work: Callable[[T], R], items: Iterable[T], workers: int, together: int = BLOCK
) -> Iterator[R]:
    """Apply a function to items in several processes; yield the results in the order of the items.

    At most ``(AHEAD * workers + 1) * together`` items are read ahead of the results. ``work`` is
    copied to each process once. With one worker, or without shared memory, this process does the
    work. Errors of ``work`` are raised again here; a process that is killed is a `DataError`.

    Args:
        work: the function, called with each item.
        items: the items, which are read as they are needed.
        workers: the number of processes.
        together: how many items are sent to a process at once; 1 for items that are large.
    """
    if workers == 1 or not can_share_locks():
        yield from map(work, items)
        return
    rest = iter(items)
    with ProcessPoolExecutor(workers, initializer=_begin, initargs=(work,)) as pool:
        waiting: deque[Future[list[R]]] = deque()
        try:
            while block := list(islice(rest, together)):
                waiting.append(pool.submit(_do, block))
                if len(waiting) > AHEAD * workers:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        except BrokenProcessPool:
            raise DataError(
                "a worker process was killed; if the machine ran out of memory, use fewer --workers"
            ) from None
        finally:
            # Waits: a process that ends before its pool may wait for workers that nobody ends.
            pool.shutdown(cancel_futures=True)


def end_with_parent() -> None:
    """Start a thread that ends this process as soon as the parent process has died."""
    Thread(target=_await_parent, daemon=True).start()


def _await_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _begin(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()


def _do(block: list[Any]) -> list[Any]:
    return [_work(item) for item in block]
