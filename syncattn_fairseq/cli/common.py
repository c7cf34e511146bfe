"""What the commands share: how they fail, and arguments."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Sequence

from syncattn_fairseq.data.errors import DataError


def command(run: Callable[[Sequence[str] | None], None]) -> Callable[..., int]:
    """Make the entry point of a command: bad input is one line on standard error and status 1."""

    @functools.wraps(run)
    def main(argv: Sequence[str] | None = None) -> int:
        try:
            run(argv)
        except (DataError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        return 0

    return main


def positive(value: str) -> int:
    """Read a whole number from 1."""
    number = int(value)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number
