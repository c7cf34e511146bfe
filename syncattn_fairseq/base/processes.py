"""Work on many lines in several processes, in order, with little of it in memory."""

from __future__ import annotations

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

T = TypeVar("T")
R = TypeVar("R")

#: Items that go to a process together.
BLOCK = 1000
#: Blocks of each process that wait, or whose results do.
AHEAD = 3

_work: Callable[[Any], Any]


def map_in_order(work: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Yield the result of each item, in the order of the items.

    No more than ``(AHEAD * workers + 1) * BLOCK`` items are read before their results are taken.

    Args:
        work: what to do; it is copied to each process once.
        items: what to do it with.
        workers: number of processes; with 1, it is done in this one.

    Raises:
        DataError: a process was killed. What ``work`` raises comes through.
    """
    if workers == 1:
        yield from map(work, items)
        return
    rest = iter(items)
    with ProcessPoolExecutor(workers, initializer=_begin, initargs=(work,)) as pool:
        waiting: deque[Future[list[R]]] = deque()
        try:
            while block := list(islice(rest, BLOCK)):
                waiting.append(pool.submit(_do, block))
                if len(waiting) > AHEAD * workers:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        except BrokenProcessPool:
            raise DataError(
                "a worker process was killed; if memory ran out, use fewer --workers"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def end_with_parent() -> None:
    """Let this process end when the one that has started it is killed: nobody needs its work."""
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
    end_with_parent()


def _do(block: list[Any]) -> list[Any]:
    return [_work(item) for item in block]
