"""Errors in the input, each one line that says where it is and how to fix it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class DataError(ValueError):
    """Input that cannot be used; ``str(error)`` is the one line that a command prints."""


class BadParse(DataError):
    """The parse of one sentence is not a dependency tree over the sentence's words.

    Args:
        reason: the kind of fault in a few words, the same for every sentence that has it.
        detail: what is wrong with this sentence.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def shorten(text: object, longest: int = 400) -> str:
    """Return what a file or a library says as a part of one line.

    Args:
        text: may have several lines.
        longest: cut off what is longer.
    """
    line = " ".join(str(text).splitlines())
    return line if len(line) <= longest else f"{line[:longest]}..."


@contextmanager
def naming(place: object) -> Iterator[None]:
    """Put a place, such as a file and a line, in front of the errors of a block."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{place}: {error}") from None
