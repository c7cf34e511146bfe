"""Errors in the input: each is a single line with the place and the remedy."""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

#: Parts of the messages of failed writes: PyTorch's, and the system's as safetensors quotes it.
_NOT_WRITTEN = ("unexpected pos ", "PytorchStreamWriter failed", "No space left on device")


class DataError(ValueError):
    """Error for unusable input; ``str(error)`` is the one-line message that a command prints."""


def printable(text: str) -> str:
    """Return a text on one line: unprintable characters, such as line ends, are escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def describe(error: OSError) -> str:
    """Return the message of a system error with the file's name and without the error number."""
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def describe_lack_of_memory(error: BaseException) -> str | None:
    """Return a message for an out-of-memory error; None for any other error."""
    text = shorten(error, 200)
    lacking = "can't allocate memory" in text or "out of memory" in text
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and lacking):
        return (
            f"out of memory{': ' * bool(text)}{text}; use smaller batches, models or inputs, or "
            "a machine with more memory"
        )
    return None


class BadSentence(DataError):
    """Error for one unusable sentence among several, with the sentence's number.

    Args:
        number: the number of the sentence, counted from 1.
        fault: what is wrong with the sentence.
    """

    def __init__(self, number: int, fault: str) -> None:
        super().__init__(f"sentence {number}: {fault}")
        self.number, self.fault = number, fault


class BadParse(DataError):
    """Error for a parse of a sentence that is not a dependency tree over the sentence's words.

    The reason is the same for all sentences with such a fault; the detail is of this one.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def shorten(text: object, longest: int = 400) -> str:
    """Return a text, such as an error message, on one line, cut after ``longest`` characters."""
    line = " ".join(str(text).splitlines())
    return line if len(line) <= longest else f"{line[:longest]}..."


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean NAME?`` with the most similar known name; "" if none is similar."""
    found = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


@contextmanager
def naming(place: object) -> Iterator[None]:
    """Put a place, such as ``FILE:LINE``, before the message of the block's `DataError`."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{place}: {error}") from None


@contextmanager
def naming_full_disk(path: Path) -> Iterator[None]:
    """Add the path of the file being written to errors about a full disk raised in the block.

    Raises:
        DataError: PyTorch or safetensors could not write a file.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            error.filename = str(path)
        raise
    except Exception as error:
        if any(sign in str(error) for sign in _NOT_WRITTEN):
            raise DataError(f"{path}: cannot be written; is the disk full?") from error
        raise
