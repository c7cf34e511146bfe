"""The only module for reading text: all commands and exports share the same definition of a line.

A line ends at a line feed, as ``wc -l`` counts and POSIX says, and nowhere else. Control
characters in it, such as a carriage return, are white space, and a line of characters that nobody
sees is empty.
"""

import bz2
import codecs
import gzip
import io
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO
from unicodedata import category

from .errors import DataError
from .files import open_file, read_file
from .inputs import name_input, open_input

#: How compressed files begin, and what reads them.
_COMPRESSED: dict[re.Pattern[bytes], Any] = {
    re.compile(rb"\x1f\x8b"): gzip.open,
    re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"): bz2.open,
}
_SUFFIXES = (".gz", ".bz2")

#: How files begin that are no text with a sentence on each line. In UTF-16, every other byte is 0.
_UTF_16 = re.compile(r"\udcff\udcfe|\udcfe\udcff|(?:[^\0]\0){6}|(?:\0[^\0]){6}")
_XML = re.compile(r"\s*<(\?xml\s|!doctype\s|tmx\b|xliff\b)", re.IGNORECASE)

#: Control characters (Unicode's Cc) but the tab, which separates columns.
_CONTROL = re.compile("[\x00-\x08\n-\x1f\x7f-\x9f]")

MAX_LINE = 2**24
"""The most characters of a line, including the line end. No sentence, parse or tree is longer: a
file with such a line is not text, and would fill the memory."""


def clean_line(line: str) -> str:
    """Return a line without its line end, and with control characters replaced by spaces.

    A line without a visible character becomes empty.
    """
    line = _CONTROL.sub(" ", line.rstrip("\r\n"))
    return line if any(map(_is_seen, line.lstrip())) else ""


def _is_seen(character: str) -> bool:
    """Return whether a character is visible: neither white space nor a format character (Cf)."""
    return not character.isspace() and category(character) != "Cf"


def is_encodable(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8, which is false if it has lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def join_line(text: str) -> str:
    """Return a text on a single line, with one space for each run of white space.

    White space is Unicode's, such as line ends, tabs, no-break and ideographic spaces, and control
    characters. What is at either end is removed.
    """
    return " ".join(clean_line(text).split())


def read_lines(path: Path | str | int) -> Iterator[str]:
    """Yield the lines of a UTF-8 text, cleaned by `clean_line`.

    The text is a file, a pipe or an open file descriptor. `DataError` names a line that is not
    UTF-8, or longer than `MAX_LINE`, a damaged file, or one of another kind (`check_first_line`).
    """
    with open_text(path, errors="surrogateescape") as file:
        yield from _lines(file, name_input(path))


def check_first_line(line: str, name: str, is_xml: bool = False) -> None:
    """Raise `DataError` if the first line of a file shows that the file is XML or UTF-16.

    Args:
        line: the first line of the file; bytes that are not UTF-8 are lone surrogates.
        name: the name of the file in the error.
        is_xml: whether the file should be XML.
    """
    if _UTF_16.match(line):
        raise DataError(
            f"{name}:1: UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW"
        )
    if _XML.match(line) and not is_xml:
        raise DataError(
            f"{name}:1: this is XML (such as TMX or XLIFF), not plain text; write a text file "
            "for each language, with one sentence on each line"
        )


def read_file_lines(path: Path | str) -> Iterator[str]:
    """Read a small file as a whole, then yield the file's lines.

    Lines and errors are those of `read_lines`; `read_file` limits the size.
    """
    text = io.BytesIO(read_file(path))
    return _lines(io.TextIOWrapper(text, "utf-8-sig", "surrogateescape", newline="\n"), str(path))


def split_lines(data: bytes) -> Iterator[str]:
    """Yield the lines of a UTF-8 text in memory, cleaned by `clean_line`."""
    return map(clean_line, io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n"))


def _lines(file: TextIO, name: str) -> Iterator[str]:
    # Undecodable bytes come through as lone surrogates, which valid text never holds: this tells
    # us which line has them, although the decoder works in blocks.
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if number == 1:
            check_first_line(line, name)
        if len(line) > MAX_LINE:
            raise DataError(
                f"{name}:{number}: the line has more than {MAX_LINE:,} characters; check that "
                "the file is plain text with one sentence on each line"
            )
        text = line.removesuffix("\n")
        if text.isprintable() and not text.isspace():
            yield text  # there is nothing to clean, and looking for it takes longer
            continue
        if not is_encodable(line):
            raise DataError(f"{name}:{number}: not UTF-8; convert the file to UTF-8")
        yield clean_line(line)


def read_blocks(*paths: Path | str, characters: int = 2**18) -> Iterator[tuple[list[str], ...]]:
    """Yield the lines of parallel texts in blocks, for processing in several processes.

    Args:
        paths: the texts, which all have the same number of lines.
        characters: a block ends as soon as the lines of all texts have this many characters.

    Yields:
        for each block, a list of lines for each text.
    """
    block: list[tuple[str, ...]] = []
    size = 0
    for lines in zip(*map(read_lines, paths), strict=False):
        block.append(lines)
        size += sum(map(len, lines)) + 1
        if size >= characters:
            yield tuple(map(list, zip(*block, strict=True)))
            block, size = [], 0
    if block:
        yield tuple(map(list, zip(*block, strict=True)))


def count_lines(*paths: Path) -> int:
    """Return how many lines each of the files has; `DataError` if the numbers differ or are 0."""
    counts = [sum(1 for _ in read_lines(path)) for path in paths]
    for path, count in zip(paths, counts, strict=True):
        if count == 0:
            raise DataError(f"{path}: the file is empty")
        if count != counts[0]:
            last = min(count, counts[0])
            raise DataError(
                f"{path}:{last}: the file has {count} lines, but {paths[0]} has {counts[0]}; "
                "both files need one line for each sentence, empty lines included"
            )
    return counts[0]


@contextmanager
def open_text(path: Path | str | int, errors: str = "strict") -> Iterator[TextIO]:
    """Open a UTF-8 text for reading, without its byte order mark; decompress gzip and bzip2.

    Lines end at line feeds alone. ``errors`` says, as for `codecs`, what becomes of bytes that are
    not UTF-8. `DataError`: a compressed file is damaged.
    """
    with open_input(path) as file:
        opener = _find_opener(file.peek(16))
        content = opener(file) if opener else file
        with io.TextIOWrapper(content, "utf-8-sig", errors, newline="\n") as text:
            try:
                yield text
            except (EOFError, OSError, zlib.error) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise  # of the system
                raise DataError(
                    f"{name_input(path)}: not a complete compressed file ({error}); get a new "
                    "copy of the file"
                ) from None


def find_text(path: Path) -> Path:
    """Return ``path``, or the path of its ``.gz`` or ``.bz2`` file if only that exists."""
    if not path.exists():
        for suffix in _SUFFIXES:
            compressed = path.with_name(path.name + suffix)
            if compressed.exists():
                return compressed
    return path


def is_plain(path: Path) -> bool:
    """Return whether a path is a regular, uncompressed file without a byte order mark."""
    if not stat.S_ISREG(path.stat().st_mode):
        return False
    with open_file(path) as file:
        head = file.read(16)
    return not head.startswith(codecs.BOM_UTF8) and _find_opener(head) is None


def _find_opener(head: bytes) -> Any | None:
    return next((opener for begins, opener in _COMPRESSED.items() if begins.match(head)), None)
