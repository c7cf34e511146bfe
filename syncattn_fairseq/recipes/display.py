"""What a recipe shows: a line for each stage, and a bar for each that runs, on a terminal."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

#: How fairseq logs the number of updates, in any of its formats.
UPDATES = re.compile(r"num_updates\W+(\d+)")


class Bar:
    """The bar of a stage.

    Args:
        title: what stands before it.
        updates: how many updates there are to be; None: what commands print is shown instead.
        position: line of the terminal, from 0.
    """

    def __init__(self, title: str, updates: int | None, position: int) -> None:
        shown = "{l_bar}{bar}{r_bar}" if updates else "{desc} [{elapsed}] {postfix}"
        self._bar = tqdm(
            desc=title,
            total=updates,
            position=position,
            leave=False,
            bar_format=shown,
            unit=" updates",
            dynamic_ncols=True,
            disable=not sys.stderr.isatty(),
        )

    def told(self, text: str) -> None:
        """Take in what a command printed."""
        if self._bar.disable:
            return
        if self._bar.total is None:
            self._bar.set_postfix_str(text.strip()[:120])
        elif found := UPDATES.search(text):
            self._bar.n = int(found[1])
            self._bar.refresh()

    def close(self) -> None:
        """Take it away."""
        self._bar.close()


class Display:
    """Lines and bars of stages that run side by side."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: set[int] = set()

    def say(self, text: str) -> None:
        """Print a line, above the bars."""
        with self._lock:
            tqdm.write(text)
            sys.stdout.flush()

    @contextmanager
    def stage(self, title: str, updates: int | None) -> Iterator[Bar]:
        """Show a stage while it runs; when it is done, a line with its time."""
        if not sys.stderr.isatty():
            self.say(f"== {title}")
        with self._lock:
            position = next(n for n in range(len(self._taken) + 1) if n not in self._taken)
            self._taken.add(position)
        bar = Bar(title, updates, position)
        began = time.monotonic()
        try:
            yield bar
        finally:
            bar.close()
            with self._lock:
                self._taken.discard(position)
        self.say(f"== {title}: done in {duration(time.monotonic() - began)}")


def duration(seconds: float) -> str:
    """Return a time as a person says it."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
