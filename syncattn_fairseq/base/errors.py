"""Errors in the input, each one line that says where it is and how to fix it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class DataError(ValueError):
    """Input that cannot be used; ``str(error)`` is the one line that a command prints."""


def printable(text: str) -> str:
    """Return a text on one line: what does not print, such as a line end, is shown escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class BadParse(DataError):
    """The parse of one sentence is not a dependency tree over the sentence's words.

    Args:
        reason: the kind of fault in a few words, the same for every sentence that has it.
        detail: what is wrong with this sentence.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@contextmanager
def naming(place: object) -> Iterator[None]:
    """Put a place, such as a file and a line, in front of the errors of a block."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{place}: {error}") from None
