"""Batches shared by the calls of several threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock, RLock
from time import monotonic

from .answers import Sentence, Translation
from .decoding import Decoding


@dataclass(frozen=True)
class Search:
    """The search settings common to all sources of a batch.

    Attributes:
        decoding: the settings of the call.
        most: the most subwords of a translation.
    """

    decoding: Decoding
    most: int


@dataclass(eq=False)
class _Job:
    """A waiting source, with the translation or the error once there is a result."""

    source: Sentence
    search: Search
    translation: Translation | None = None
    error: BaseException | None = None


class SharedBatches:
    """A queue of sources from several threads, batched if their search settings are equal.

    Whichever thread holds the lock translates a batch for all that wait, in the order of their
    calls.

    Args:
        translate: translates one batch; only one thread at a time calls it.

    Attributes:
        lock: held by the thread that uses the model.
    """

    def __init__(
        self, translate: Callable[[Sequence[Sentence], Search], list[Translation]]
    ) -> None:
        self._translate = translate
        self.lock = RLock()
        self._waiting: deque[_Job] = deque()
        self._waiting_lock = Lock()

    def run(
        self,
        sources: Sequence[Sentence],
        searches: Sequence[Search],
        seconds: float | None = None,
    ) -> list[Translation]:
        """Translate sources, batched with those of other threads, and return their translations.

        Args:
            sources: sentences with at least one subword; neighbours of similar length are fastest.
            searches: one for each source.
            seconds: time after which no further batch is begun. None: there is no hurry.

        Raises:
            TimeoutError: the time was over before all sources were translated.
        """
        end = None if seconds is None else monotonic() + seconds
        jobs = [_Job(*each) for each in zip(sources, searches, strict=True)]
        with self._waiting_lock:
            self._waiting += jobs
        try:
            for job in jobs:
                self._wait_for(job, end)
        finally:
            if any(job.translation is None for job in jobs):  # the others are not wanted any more
                with self._waiting_lock:
                    ours = {*jobs}
                    self._waiting = deque(job for job in self._waiting if job not in ours)
        return [job.translation for job in jobs if job.translation is not None]

    def _wait_for(self, job: _Job, end: float | None) -> None:
        while job.translation is None and job.error is None:
            left = -1 if end is None else max(0.0, end - monotonic())  # -1: as long as it takes
            if left == 0 or not self.lock.acquire(timeout=left):
                raise TimeoutError(
                    "the time limit was reached before all sentences were translated"
                )
            try:
                if job.translation is None and job.error is None:
                    self._translate_next()
            finally:
                self.lock.release()
        if job.error is not None:
            raise job.error

    def _translate_next(self) -> None:
        with self._waiting_lock:
            search = self._waiting[0].search
            equal = (job for job in self._waiting if job.search == search)
            batch = [*islice(equal, search.decoding.batch_size)]
            for job in batch:
                self._waiting.remove(job)
        try:
            found = self._translate([job.source for job in batch], search)
            for job, translation in zip(batch, found, strict=True):
                job.translation = translation
        except BaseException as error:
            for job in batch:
                job.error = error
            if not isinstance(error, Exception):
                raise
