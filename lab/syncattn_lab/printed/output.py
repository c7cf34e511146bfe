"""A common reader for the output of translation programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.inputs import keeping_pipes
from syncattn_fairseq.base.packed import Packed
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.data.words import choose_scheme, join_text
from syncattn_fairseq.inference.record import read_record

from .fairseq_output import is_fairseq_output, read_fairseq_output
from .other_programs import find_reader, have_columns
from .sentences import PrintedSentence, from_record

#: Lines by which a file is recognised.
_FIRST = 1000


def read_output(
    path: str | Path,
    scheme: str | None = None,
    warn: Callable[[str], None] = lambda message: None,
) -> Sequence[PrintedSentence]:
    """Read translations, and any parses, links and distances printed with the translations.

    A file is recognised by most of its first lines: what ``syncattn-translate --jsonl``,
    fairseq, Marian, Moses or Sockeye prints, or plain text with one translation on each line.

    Args:
        path: the file.
        scheme: how subwords are marked, see `syncattn_fairseq.data.words`. None: as most lines
            show.
        warn: called with what the file holds that is not read.

    Raises:
        DataError: the file is empty, a sentence is missing or appears twice, or a line is not of
            the file's kind.
    """
    with keeping_pipes():
        lines = read_lines(path)
        first = [*islice(lines, _FIRST)]
        if not first:
            raise DataError(f"{path}: the file is empty; give translations, one on each line")
        if _are_records(first):
            return Packed(_read_records(path))
        if is_fairseq_output(chain(first, lines)):
            return read_fairseq_output(path, scheme, warn)
        reader = find_reader(first) or read_lines
        if reader is read_lines and have_columns(first):
            warn(
                f"{path}: most lines have ' ||| ', but in a form that no known program prints; "
                "whole lines are read as translations"
            )
        return _read_texts(lambda: reader(path), scheme)


def has_analyses(path: str | Path) -> bool:
    """Tell whether a file may have parses or links: JSON lines, or the output of fairseq."""
    with keeping_pipes():
        lines = read_lines(path)
        first = [*islice(lines, _FIRST)]
        return _are_records(first) or is_fairseq_output(chain(first, lines))


def _are_records(lines: Sequence[str]) -> bool:
    filled = [line for line in lines if line.strip()]
    return 2 * sum(map(_is_record, filled)) > len(filled)


def _is_record(line: str) -> bool:
    try:
        read_record(line)
    except ValueError:
        return False
    return True


def _read_texts(read: Callable[[], Iterator[str]], scheme: str | None) -> Sequence[PrintedSentence]:
    """Read translations alone, and join their subwords, if most lines have some."""
    shown = choose_scheme(read())
    chosen = scheme if scheme and shown != "none" else shown
    if chosen == "none":
        return Packed(map(PrintedSentence, read()))
    return Packed(PrintedSentence(join_text(x.split(), chosen)) for x in read())


def _read_records(path: str | Path) -> Iterator[PrintedSentence]:
    for number, line in enumerate(read_lines(path), 1):
        try:
            yield from_record(read_record(line))
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from None
