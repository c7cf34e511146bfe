"""Checksums beside binarised heads and labels, of them and of the text that they belong to.

``train.heads.en-de.en.sha256`` is what ``sha256sum`` writes, and ``sha256sum --check`` checks. The
two sides of 4.5 million sentences are 1.3 GB, which takes a second on a processor that has
instructions for SHA-256.
"""

import re
from pathlib import Path

from fairseq.data.indexed_dataset import data_file_path, index_file_path

from ..base.errors import DataError
from ..base.files import hash_file, replacing
from ..base.text import read_file_lines

SUFFIX = ".sha256"
_LINE = re.compile("([0-9a-f]{64})  .+")
_MEND = "binarise the text and its parses again, with syncattn-preprocess"


def store_checksums(text: str, marks: str) -> None:
    """Write the checksums of a text and of its marks, both binarised; paths without suffix."""
    with replacing(Path(marks + SUFFIX)) as temporary:
        lines = [f"{hash_file(path)}  {path.name}\n" for path in _list_files(text, marks)]
        temporary.write_text("".join(lines), encoding="utf-8")


def check_checksums(text: str, marks: str) -> None:
    """Check that neither a text nor its marks have changed; without checksums, nothing is checked.

    The files may have other names now.

    Raises:
        DataError: one of the files has changed.
    """
    path = Path(marks + SUFFIX)
    if not path.exists():  # from an earlier version
        return
    matches = [_LINE.fullmatch(line) for line in read_file_lines(path)]
    files = _list_files(text, marks)
    if len(matches) != len(files) or None in matches:
        raise DataError(f"{path}: not the checksums of {len(files)} files; remove it, or {_MEND}")
    for match, file in zip(matches, files, strict=True):
        if match and hash_file(file) != match[1]:
            raise DataError(f"{file}: not the file that {path} was made for; {_MEND}")


def _list_files(*datasets: str) -> list[Path]:
    return [Path(name(path)) for path in datasets for name in (index_file_path, data_file_path)]
