"""A file that is not complete yet."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ...base.errors import DataError
from ...base.files import replacing
from ...base.locks import lock


class Origin(NamedTuple):
    """The file whose first bytes a partial file holds.

    Attributes:
        url: its URL.
        version: its ETag or date; None: unknown.
        size: bytes of the whole file; None: unknown.
    """

    url: str
    version: str | None
    size: int | None


class PartialFile:
    """A partial file that is being downloaded.

    Args:
        target: its final path.
        path: its path until then.
        file: the file, open for appending, and locked.

    Attributes:
        size: its bytes so far.
    """

    def __init__(self, target: Path, path: Path, file: BinaryIO) -> None:
        self.target = target
        self.path = path
        self.size = file.seek(0, os.SEEK_END)
        self._file = file
        self._note = path.with_name(path.name + ".json")
        self._published = False

    def origin(self) -> Origin | None:
        """Return the origin of this partial file; None if nobody can send its rest."""
        try:
            origin = Origin(*json.loads(self._note.read_text("utf-8")))
        except (FileNotFoundError, ValueError, TypeError, RecursionError):
            return None
        known = isinstance(origin.version, str) and type(origin.size) in (int, type(None))
        return origin if self.size and known else None

    def begin(self, origin: Origin) -> None:
        """Start over with another origin."""
        self.clear()
        with replacing(self._note) as temporary:
            temporary.write_text(json.dumps(origin), "utf-8")

    def append(self, block: bytes) -> None:
        """Add received bytes."""
        self._file.write(block)
        self.size += len(block)

    def flush(self) -> None:
        """Write what was added to the disk."""
        self._file.flush()

    def clear(self) -> None:
        """Discard the content."""
        self._note.unlink(missing_ok=True)
        self._file.truncate(0)
        self.size = 0

    def publish(self) -> None:
        """Move the file to its final path."""
        os.replace(self.path, self.target)
        self._published = True
        self._note.unlink(missing_ok=True)

    def leave(self) -> None:
        """Keep the content for a run that can continue it; otherwise leave nothing."""
        if not self._published and self.origin() is None:
            self.clear()
            self.path.unlink(missing_ok=True)


@contextmanager
def open_partial_file(target: Path) -> Iterator[PartialFile]:
    """Yield the partial file of a download, which no other process may write in the meantime.

    Raises:
        DataError: another process is writing it, or it is not a file of its own.
    """
    path = target.with_name(f".{target.name}.part")
    try:
        # A link would redirect the download elsewhere.
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DataError(f"{path}: this is a link; remove it, then fetch again") from None
        raise
    with open(descriptor, "ab") as file:
        running = f"{target}: another download of it is running; wait until it ends"
        if not lock(file.fileno(), running):  # the other one removed it
            raise DataError(running)
        part = PartialFile(target, path, file)
        try:
            yield part
        finally:
            part.leave()
