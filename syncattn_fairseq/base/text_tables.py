"""Format rows of cells as plain text or Markdown."""

import re
from collections.abc import Sequence

#: The beginning of an HTML tag.
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned plain text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table; the first row has the names of the columns.

    Cells may come from files, so HTML tags and ``|`` in them are escaped.
    """
    head, *rest = (f"| {' | '.join(map(_cell, row))} |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *rest])


def _cell(text: str) -> str:
    return escape_html(text).replace("|", r"\|")


def escape_html(text: str) -> str:
    """Return a Markdown text with ``<`` escaped wherever an HTML tag would begin."""
    return _TAG.sub("&lt;", text)
