"""Text with one sentence per line."""

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from ....base.errors import DataError
from ....base.text import MAX_LINE, join_line


def decoded_lines(file: BinaryIO, name: str, encoding: str = "utf-8") -> Iterator[str]:
    r"""Yield lines, which end only at ``\n``, as `wc -l` and the authors of corpora count them.

    Raises:
        DataError: a line is not in this encoding, or longer than `MAX_LINE`.
    """
    for number, line in enumerate(iter(partial(file.readline, MAX_LINE + 1), b""), 1):
        if len(line) > MAX_LINE:
            raise DataError(f"{name}:{number}: a line of more than {MAX_LINE:,} bytes; is it text?")
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError:
            raise DataError(
                f"{name}:{number}: not UTF-8; text in Latin-1 has the format latin1"
            ) from None
        yield text.removeprefix("\ufeff") if number == 1 else text


def read_plain(file: BinaryIO, name: str) -> Iterator[str]:
    """Read UTF-8 text, one sentence per line."""
    return map(join_line, decoded_lines(file, name))


def read_latin1(file: BinaryIO, name: str) -> Iterator[str]:
    """Read text in ISO 8859-1, one sentence per line."""
    return map(join_line, decoded_lines(file, name, "latin-1"))
