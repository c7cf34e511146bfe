"""Checksums of first downloads, for files without published ones."""

from __future__ import annotations

import re
from pathlib import Path

from ...base.errors import DataError
from ...base.files import hash_file
from ...base.locks import refuse_links
from ...base.text import read_lines

#: Their file, in the format of ``sha256sum``.
SUMS = "SHA256SUMS"

_LINE = re.compile(r"(?P<sum>[0-9a-fA-F]{64}) [ *](?P<name>.+)")


def find_sum(path: Path, name: str) -> str | None:
    """Return the checksum of a file; None if there is none.

    Args:
        path: the list of checksums.
        name: the file's.

    Raises:
        DataError: a line is not in the format of ``sha256sum``.
    """
    sums: dict[str, str] = {}
    for number, line in enumerate(read_lines(path) if path.exists() else (), 1):
        entry = _LINE.fullmatch(line)
        if entry is None:
            raise DataError(f"{path}:{number}: not a SHA-256 and a name; mend this line")
        sums.setdefault(entry["name"], entry["sum"])
    return sums.get(name)


def note_sum(path: Path, file: Path) -> None:
    """Add a file's checksum to a list unless it has one.

    Raises:
        DataError: the list is a link.
    """
    refuse_links(path)
    if find_sum(path, file.name) is None:
        with path.open("a", encoding="utf-8") as sums:
            sums.write(f"{hash_file(file)}  {file.name}\n")
