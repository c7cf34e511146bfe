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


class Sums:
    """The checksums of the files in a folder.

    Args:
        path: the file with the checksums.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, name: str) -> str | None:
        """Return a file's checksum; None if there is none.

        Raises:
            DataError: a line is not in the format of ``sha256sum``.
        """
        checksum = None
        for number, line in enumerate(read_lines(self.path) if self.path.exists() else (), 1):
            entry = _LINE.fullmatch(line)
            if entry is None:
                raise DataError(f"{self.path}:{number}: not a SHA-256 and a name; mend this line")
            if checksum is None and entry["name"] == name:
                checksum = entry["sum"]
        return checksum

    def note(self, name: str, path: Path) -> None:
        """Add a file's checksum unless it has one.

        Raises:
            DataError: the list is a link.
        """
        refuse_links(self.path)
        if self.find(name) is None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{hash_file(path)}  {name}\n")
