"""The progress display of a recipe: a line for each stage, and bars for running stages.

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


class Display:
    """Prints lines, and a progress bar for each of the stages that run at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        """Print a line above the progress bars."""
        with self._lock:
            tqdm.write(text)
            sys.stdout.flush()

    @contextmanager
    def stage(self, title: str, updates: int | None) -> Iterator[Callable[[str], None]]:
        """Show the progress of a stage during the run, and print the stage's time at the end.

        Yields a function to call with each line that a command prints. Without a number of planned
        updates, the bar shows these lines.
        """
        terminal = sys.stderr.isatty()
        if not terminal:
            self.say(f"== {title}")
        began = reported = time.monotonic()
        layout = "{l_bar}{bar}{r_bar}" if updates else "{desc} [{elapsed}] {postfix}"
        how = {"unit": " updates", "bar_format": layout, "dynamic_ncols": True, "leave": False}

        def show(text: str) -> None:
            nonlocal reported
            if updates is None:
                bar.set_postfix_str(text.strip()[:120])
            elif match := UPDATES.search(text):
                bar.n = int(match[1])
                bar.refresh()
                if not terminal and time.monotonic() - reported >= REPORT_EVERY:
                    reported = time.monotonic()
                    self.say(f"   {title}: {match[1]} of {updates} updates")

        with tqdm(desc=title, total=updates, disable=not terminal, **how) as bar:
            yield show
        self.say(f"== {title}: done in {duration(time.monotonic() - began)}")


def duration(seconds: float) -> str:
    """Return a number of seconds in words, such as ``2 h 5 min``."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
