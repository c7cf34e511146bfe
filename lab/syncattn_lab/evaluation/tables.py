"""Tables made of columns, with footnotes for each column."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from syncattn_fairseq.base.text_tables import escape_html, format_table, markdown_table

from .measures import NONE

Table: TypeAlias = Sequence[Sequence[str]]
"""The rows of a table, each a sequence of cells; the first row has the names of the columns."""


@dataclass(frozen=True)
class Column:
    """A column of a table: name, cells, and footnote.

    Attributes:
        name: what stands above it.
        cells: one for each row; a dash where nothing is known.
        note: what its name means; empty: it explains itself.
    """

    name: str
    cells: Sequence[str]
    note: str = ""

    @property
    def says_something(self) -> bool:
        """Whether any cell of the column is not a dash."""
        return any(cell != NONE for cell in self.cells)


def list_tables(*tables: Iterable[Column]) -> list[Table]:
    """Turn tables given as columns into rows, without columns that are empty in every row.

    The first column names the rows. A table in which only these names are left is left out, too.

    A column that says nothing of any row is left out, and so is a table of names alone.
    """
    made: list[Table] = []
    for columns in tables:
        shown = [column for column in columns if column.says_something]
        if len(shown) > 1:
            rows = zip(*(column.cells for column in shown), strict=True)
            made.append([[column.name for column in shown], *rows])
    return made


def list_meanings(columns: Iterable[Column]) -> list[str]:
    """Return the footnotes of the columns that are shown, each footnote once."""
    shown = [column for column in columns if column.note and column.says_something]
    return [*dict.fromkeys(f"{column.name}: {column.note}" for column in shown)]


@dataclass(frozen=True)
class Tables:
    """A sequence of tables, with the notes below the tables."""

    tables: Sequence[Table]
    notes: Sequence[str]

    def format(self, markdown: bool = False) -> str:
        """Format the tables and their notes as plain text, or as Markdown."""
        form = markdown_table if markdown else format_table
        notes = "\n".join(map(_format_item, self.notes) if markdown else self.notes)
        return "\n\n".join([*map(form, self.tables), notes])


def _format_item(note: str) -> str:
    """Return an item of a list, in lines of 120 characters in which nothing is HTML."""
    text = f"- {escape_html(note)}"
    return textwrap.fill(text, 120, subsequent_indent="  ", break_long_words=False)


def spread(numbers: Sequence[float | None], digits: int = 1) -> str:
    """Format mean, standard deviation, minimum and maximum; only the value if all are equal.

    Numbers that are None do not count.
    """
    known = [number for number in numbers if number is not None]
    if not known:
        return NONE
    mean = f"{statistics.mean(known):.{digits}f}"
    if len({*known}) == 1:
        return mean
    deviation = f"{statistics.stdev(known):.{digits}f}"
    return f"{mean} ± {deviation} ({min(known):.{digits}f}–{max(known):.{digits}f})"
