"""Parse shards in processes on this machine; :mod:`.slurm_jobs` has another executor."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias

from ..base.errors import DataError
from ..base.worker_pool import end_with_parent
from .shards import Shard, ShardTask

Progress: TypeAlias = Callable[[int], object]
"""Function to report progress, called with the number of words parsed since the last call."""

Executor: TypeAlias = Callable[[ShardTask, Sequence[Shard], Progress], None]
"""Function that parses the shards of a task; on a `DataError`, it keeps finished shards."""


def make_local_executor(workers: int, report_every: float = 0.2) -> Executor:
    """Return an executor that parses shards in processes on this machine.

    Each process loads the parser once, takes shard after shard, and reports its progress every few
    seconds. A single shard is parsed in this process, since starting another takes seconds.
    """

    def execute(task: ShardTask, shards: Sequence[Shard], progress: Progress) -> None:
        if len(shards) == 1:
            task.parse(shards[0], task.source.open(0), progress)
            return
        # Forking this process would be faster but might deadlock: libraries have started threads.
        context: Any = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["__main__", *task.source.modules()])
        following = context.Value("i", 0)
        living: dict[Connection, Any] = {}
        try:
            for number in range(min(workers, len(shards))):
                receiver, sender = context.Pipe(duplex=False)
                arguments = (task, shards, following, number, sender, report_every)
                living[receiver] = context.Process(target=_work, args=arguments, daemon=True)
                living[receiver].start()
                sender.close()
            while living:
                for receiver in wait(list(living)):
                    assert isinstance(receiver, Connection)
                    try:
                        message = receiver.recv()
                    except EOFError:
                        _check(living.pop(receiver))
                        continue
                    if isinstance(message, str):
                        raise DataError(message)
                    progress(message)
        finally:
            for process in living.values():
                process.terminate()
                process.join()

    return execute


def _check(process: Any) -> None:
    process.join()
    if process.exitcode:
        cause = f"signal {-process.exitcode}" if process.exitcode < 0 else "see the error above"
        memory = (
            ("; if the machine ran out of memory, use fewer --workers")
            if process.exitcode == -9
            else ""
        )
        raise DataError(
            f"a worker process died ({cause}){memory}; run the command again to continue: "
            "finished shards are kept"
        )


def _work(
    task: ShardTask,
    shards: Sequence[Shard],
    following: Any,
    number: int,
    sender: Connection,
    report_every: float,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops us
    end_with_parent()
    waiting = 0
    sent = time.monotonic()

    def report(words: int) -> None:
        nonlocal waiting, sent
        waiting += words
        if time.monotonic() - sent > report_every:
            sender.send(waiting)
            waiting, sent = 0, time.monotonic()

    try:
        parser = task.source.open(number)
        while True:
            with following.get_lock():
                index = following.value
                following.value += 1
            if index >= len(shards):
                sender.send(waiting)
                return
            task.parse(shards[index], parser, report)
    except (DataError, OSError) as error:
        sender.send(str(error))
