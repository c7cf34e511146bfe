"""What a recipe shows: a line for each stage, and how far each is that runs.

That is a bar on a terminal; elsewhere, as in a log, a training says every half minute how many
updates it has done.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

#: How fairseq logs the number of updates, in any of its formats.
UPDATES = re.compile(r"num_updates\W+(\d+)")
#: Seconds between two lines about a training, where there is no terminal.
SAID_EVERY = 30


class Bar:
    """The bar of a stage.

    Args:
        title: what stands before it.
        updates: how many updates there are to be; None: what commands print is shown instead.
        position: line of the terminal, from 0.
        say: prints a line.
    """

    def __init__(
        self, title: str, updates: int | None, position: int, say: Callable[[str], object]
    ) -> None:
        self._title, self._updates, self._say = title, updates, say
        self._said = time.monotonic()
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
        if self._updates is None:
            self._bar.set_postfix_str(text.strip()[:120])
        elif found := UPDATES.search(text):
            self._bar.n = int(found[1])
            self._bar.refresh()
            if self._bar.disable and time.monotonic() - self._said >= SAID_EVERY:
                self._said = time.monotonic()
                self._say(f"   {self._title}: {found[1]} of {self._updates} updates")

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
        bar = Bar(title, updates, position, self.say)
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
