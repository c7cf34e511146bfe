"""What a recipe shows: a line for each stage, and the progress of those that run.

On a terminal, progress is a bar; elsewhere, as in a log, a training reports its number of updates
every half minute.
"""

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

#: How fairseq logs the number of updates, in any of its formats.
UPDATES = re.compile(r"num_updates\W+(\d+)")
#: Seconds between two lines about a training, if there is no terminal.
REPORT_EVERY = 30


class Bar:
    """The bar of a stage.

    Args:
        title: the text before it.
        updates: the planned number of updates; None: show what commands print instead.
        position: line of the terminal, from 0.
        say: prints a line.
    """

    def __init__(
        self, title: str, updates: int | None, position: int, say: Callable[[str], object]
    ) -> None:
        self._title, self._updates, self._say = title, updates, say
        self._report_time = time.monotonic()
        layout = "{l_bar}{bar}{r_bar}" if updates else "{desc} [{elapsed}] {postfix}"
        self._bar = tqdm(
            desc=title,
            total=updates,
            position=position,
            leave=False,
            bar_format=layout,
            unit=" updates",
            dynamic_ncols=True,
            disable=not sys.stderr.isatty(),
        )

    def show(self, text: str) -> None:
        """Show what a command printed."""
        if self._updates is None:
            self._bar.set_postfix_str(text.strip()[:120])
        elif match := UPDATES.search(text):
            self._bar.n = int(match[1])
            self._bar.refresh()
            if self._bar.disable and time.monotonic() - self._report_time >= REPORT_EVERY:
                self._report_time = time.monotonic()
                self._say(f"   {self._title}: {match[1]} of {self._updates} updates")

    def close(self) -> None:
        """Remove the bar."""
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
        """Show a stage while it runs, and a line with its time when it is done."""
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
    """Return a time in words."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
