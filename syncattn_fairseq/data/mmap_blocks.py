"""Check fairseq's memory-mapped datasets, and write them a block of sentences at a time.

An index file holds a header (magic number, version, type of entries, number of sentences), how many
entries each sentence has (int32), and at which byte of the data file each begins (int64). Datasets
are named by their paths without suffix.
"""

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fairseq.data.huffman import HuffmanMMapIndex
from fairseq.data.indexed_dataset import (
    IndexedDataset,
    MMapIndexedDataset,
    _code_to_dtype,
    _dtype_header_code,
    data_file_path,
    index_file_path,
)

from ..base.errors import DataError
from ..base.files import hash_file, open_file, replacing
from ..base.text import read_file_lines

SUFFIX = ".sha256"
"""Suffix of the file with checksums of a text and its marks, as ``sha256sum`` writes them."""
_LINE = re.compile("([0-9a-f]{64})  .+")
_MEND = "binarise the text and its parses again, with syncattn-preprocess"
_HEADER = struct.Struct("<9sQBQ")
#: Number of sentences whose sizes are read together.
_SENTENCES = 2**18
_DAMAGED = "the file is damaged or cut short; binarise the text again"
#: Beginnings of the index files of fairseq's other kinds of dataset.
_OTHERS = (IndexedDataset._HDR_MAGIC, HuffmanMMapIndex._HDR_MAGIC[:8])


def check_dataset(dataset: str) -> None:
    """Raise `DataError` unless the index of a memory-mapped dataset fits its data file."""
    if not _is_mapped(dataset):
        return
    index_path, data_path = map(Path, (index_file_path(dataset), data_file_path(dataset)))
    dtype, sentences = _read_header(index_path)
    at = 0
    with open_file(index_path) as index:
        index.seek(_HEADER.size + 4 * sentences)
        for sizes in read_sizes(dataset):
            ends = at + sizes.cumsum(dtype=np.int64) * dtype().itemsize
            begins = np.fromfile(index, np.int64, len(sizes))
            if sizes.min() < 0 or begins[0] != at or not np.array_equal(begins[1:], ends[:-1]):
                raise DataError(f"{index_path}: {_DAMAGED}")
            at = int(ends[-1])
    if data_path.stat().st_size != at:
        raise DataError(f"{data_path}: {_DAMAGED}")


def _read_header(path: Path) -> tuple[Any, int]:
    """Return the type of a dataset's entries, and the number of sentences in the index."""
    with open_file(path) as index:
        magic, version, code, sentences = _HEADER.unpack(
            index.read(_HEADER.size).ljust(_HEADER.size)
        )
    dtype = _code_to_dtype.get(code)
    sound = (magic, version) == (MMapIndexedDataset.Index._HDR_MAGIC, 1)
    if not sound or not dtype or path.stat().st_size != _HEADER.size + 12 * sentences:
        raise DataError(f"{path}: {_DAMAGED}")
    return dtype, sentences


def count_sentences(dataset: str) -> int:
    """Return the number of sentences in a dataset; raise `DataError` for a damaged index."""
    return _read_header(Path(index_file_path(dataset)))[1]


def read_sizes(dataset: str) -> Iterator[np.ndarray]:
    """Yield the number of entries of each sentence of a dataset, in arrays of many sentences.

    `DataError`: the index is damaged.
    """
    path = Path(index_file_path(dataset))
    _, sentences = _read_header(path)
    with open_file(path) as index:
        index.seek(_HEADER.size)
        while sentences:
            sizes = np.fromfile(index, np.int32, min(sentences, _SENTENCES))
            yield sizes
            sentences -= len(sizes)


def check_symbols(dataset: str, symbols: int) -> None:
    """Raise `DataError` if a binarised text has words beyond a dictionary of ``symbols`` words."""
    if not _is_mapped(dataset):
        return
    if any(block.max() >= symbols or block.min() < 0 for block in _read_entries(dataset)):
        raise DataError(
            f"{data_file_path(dataset)}: has words beyond the {symbols} of the dictionary; "
            "binarise the text again with this dictionary"
        )


def _is_mapped(dataset: str) -> bool:
    with open_file(index_file_path(dataset)) as index:
        return index.read(8) not in _OTHERS


def has_entry(dataset: str, least: int) -> bool:
    """Return whether any entry of a dataset is ``least`` or more.

    Reading stops at the first.
    """
    return any((block >= least).any() for block in _read_entries(dataset))


def _read_entries(dataset: str) -> Iterator[np.ndarray]:
    dtype = MMapIndexedDataset.Index(index_file_path(dataset)).dtype
    with open_file(data_file_path(dataset)) as data:
        while len(block := np.fromfile(data, dtype, 2**20)):
            yield block


def write_dataset(
    dataset: Path, dtype: Any, blocks: Iterable[tuple[np.ndarray, np.ndarray]]
) -> None:
    """Write a memory-mapped dataset, byte for byte as fairseq does, but in little memory.

    It appears whole or not at all.

    Args:
        dataset: the path of the dataset, without suffix.
        dtype: numpy's type of the entries.
        blocks: for each block of sentences, all their entries, ``(entries,)``, and the number of
            entries of each sentence, ``(sentences,)``.
    """
    index_path, data_path = index_file_path(str(dataset)), data_file_path(str(dataset))
    # The index appears last: without it, the dataset does not exist for fairseq.
    with replacing(Path(index_path)) as index_name, replacing(Path(data_path)) as data_name:
        write_files(index_name, data_name, dtype, blocks)


def write_files(
    index_path: Path, data_path: Path, dtype: Any, blocks: Iterable[tuple[np.ndarray, np.ndarray]]
) -> None:
    """Write the index file and the data file of a memory-mapped dataset.

    Args:
        index_path: the index to write.
        data_path: the data file to write.
        dtype: numpy's type of the entries.
        blocks: as for `write_dataset`.
    """
    magic, code = MMapIndexedDataset.Index._HDR_MAGIC, _dtype_header_code(dtype)
    sentences = at = 0
    with index_path.open("wb") as index, data_path.open("wb") as data:
        index.write(_HEADER.pack(magic, 1, code, 0))
        for entries, sizes in blocks:  # not sentence by sentence, which takes much longer
            data.write(entries.astype(dtype, copy=False).tobytes())
            index.write(sizes.astype(np.int32, copy=False).tobytes())
            sentences += len(sizes)
        index.flush()
        with open_file(index_path) as written:
            written.seek(_HEADER.size)
            for begin in range(0, sentences, _SENTENCES):
                sizes = np.fromfile(written, np.int32, min(_SENTENCES, sentences - begin))
                ends = at + sizes.cumsum(dtype=np.int64) * dtype().itemsize
                index.write(np.append(at, ends[:-1]).tobytes())
                at = int(ends[-1])
        index.seek(0)
        index.write(_HEADER.pack(magic, 1, code, sentences))


def store_checksums(text: str, marks: str) -> None:
    """Write the checksums of a binarised text and of its heads (or labels) to a file beside them.

    ``text`` and ``marks`` are paths without suffix.
    """
    write_sums(Path(marks + SUFFIX), list_files(text, marks))


def write_sums(path: Path, files: Iterable[Path]) -> None:
    """Write the SHA-256 sums of files to a checksum file."""
    with replacing(path) as temporary:
        lines = [f"{hash_file(file)}  {file.name}\n" for file in files]
        temporary.write_text("".join(lines), encoding="utf-8")


def check_checksums(text: str, marks: str) -> None:
    """Raise `DataError` if a binarised text or its heads (labels) do not match stored checksums."""
    path = Path(marks + SUFFIX)
    if not path.exists():  # from an earlier version
        return
    matches = [_LINE.fullmatch(line) for line in read_file_lines(path)]
    files = list_files(text, marks)
    if len(matches) != len(files) or None in matches:
        raise DataError(
            f"{path}: does not have the checksums of {len(files)} files; remove the file, or "
            f"{_MEND}"
        )
    for match, file in zip(matches, files, strict=True):
        if match and hash_file(file) != match[1]:
            raise DataError(
                f"{file}: has changed since {path} was written with its checksum; {_MEND}"
            )


def have_sums(path: Path, files: Sequence[Path]) -> bool:
    """Return whether files exist and have the checksums written by `write_sums`."""
    if not all(file.exists() for file in (path, *files)):
        return False
    sums = [line.split(" ")[0] for line in read_file_lines(path)]
    return sums == [hash_file(file) for file in files]


def list_files(*datasets: str) -> list[Path]:
    """Return the paths of the index and data files of datasets, named without suffix."""
    return [Path(name(path)) for path in datasets for name in (index_file_path, data_file_path)]
