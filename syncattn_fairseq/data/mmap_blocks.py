"""Read and write fairseq's memory-mapped datasets, a block of sentences at a time.

fairseq's own classes hold the size and the address of every sentence in memory; these need no more
memory for a large corpus than for a small one.

An index file holds a header, the number of sentences (int64), how many entries each has (int32),
and at which byte of the data file each begins (int64).
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from fairseq.data.huffman import HuffmanMMapIndex
from fairseq.data.indexed_dataset import (
    IndexedDataset,
    MMapIndexedDataset,
    _code_to_dtype,
    data_file_path,
    index_file_path,
)

from ..base.errors import DataError
from ..base.files import open_file, replacing

_HEADER = (9, 8, 1, 8)  # bytes of the magic number, version, type of entries and count
_COUNT_AT = sum(_HEADER[:3])
_SIZES_AT = sum(_HEADER)
#: How the indices of fairseq's other kinds of dataset begin.
_OTHERS = (IndexedDataset._HDR_MAGIC, HuffmanMMapIndex._HDR_MAGIC[:8])
_DAMAGED = "damaged or cut short; binarise the text again"


class SizesReader:
    """Reads how many entries the sentences of a dataset have.

    Args:
        index: the dataset's index file, open.

    Attributes:
        sentences: number of sentences.
    """

    def __init__(self, index: BinaryIO) -> None:
        self._index = index
        index.seek(_COUNT_AT)
        counts = np.fromfile(index, np.int64, 1)
        if not counts.size:
            raise DataError(f"{index.name}: not a binarised text; binarise it again")
        self.sentences = int(counts[0])

    def read(self, sentences: int) -> np.ndarray:
        """Return the sizes of the next sentences."""
        return np.fromfile(self._index, np.int32, sentences)

    def largest(self, block: int = 2**16) -> int:
        """Return the size of the longest sentence, and go back to the first sentence."""
        starts = range(0, self.sentences, block)
        sizes = [self.read(min(block, self.sentences - start)).max() for start in starts]
        self._index.seek(_SIZES_AT)
        return int(max(sizes, default=0))


def check_dataset(dataset: str, block: int = 2**20) -> None:
    """Check that a dataset's index fits its data file; fairseq would name no file.

    Args:
        dataset: path without suffix; if it is not memory-mapped, nothing is checked.
        block: how many sentences are checked at a time.

    Raises:
        DataError: a file is damaged or cut short; the error names it.
    """
    if not _is_mapped(dataset):
        return
    index_path, data_path = index_file_path(dataset), data_file_path(dataset)
    with open_file(index_path) as index:
        magic, version, code, count = (index.read(size) for size in _HEADER)
        sentences = int.from_bytes(count, "little")
        dtype = _code_to_dtype.get(int.from_bytes(code, "little"))
        sound = magic == MMapIndexedDataset.Index._HDR_MAGIC and version == b"\1" + bytes(7)
        if not sound or not dtype or _size(index_path) != _SIZES_AT + 12 * sentences:
            raise DataError(f"{index_path}: {_DAMAGED}")
        end = 0
        for start in range(0, sentences, block):
            number = min(block, sentences - start)
            index.seek(_SIZES_AT + 4 * start)
            sizes = np.fromfile(index, np.int32, number)
            index.seek(_SIZES_AT + 4 * sentences + 8 * start)
            addresses = np.fromfile(index, np.int64, number)
            ends = end + sizes.cumsum(dtype=np.int64) * dtype().itemsize
            if sizes.min() < 0 or addresses[0] != end or (addresses[1:] != ends[:-1]).any():
                raise DataError(f"{index_path}: {_DAMAGED}")
            end = int(ends[-1])
    if _size(data_path) != end:
        raise DataError(f"{data_path}: {_DAMAGED}")


def check_symbols(dataset: str, symbols: int) -> None:
    """Check that a dictionary has all words of a text; models would fail without a reason.

    Args:
        dataset: path without suffix; if it is not memory-mapped, nothing is checked.
        symbols: how many the dictionary has.

    Raises:
        DataError: the text has others.
    """
    if not _is_mapped(dataset):
        return
    if any(block.max() >= symbols or block.min() < 0 for block in _read_entries(dataset)):
        raise DataError(
            f"{data_file_path(dataset)}: has words beyond the {symbols} of its dictionary; "
            "binarise the text again with this dictionary"
        )


def _is_mapped(dataset: str) -> bool:
    with open_file(index_file_path(dataset)) as index:
        return index.read(_HEADER[0])[:8] not in _OTHERS


def _size(path: str) -> int:
    return Path(path).stat().st_size


def has_entry(dataset: str, least: int) -> bool:
    """Return whether any entry of a dataset is at least this large; stop reading at the first.

    Args:
        dataset: path without suffix.
        least: the smallest entry that counts.
    """
    return any((block >= least).any() for block in _read_entries(dataset))


def _read_entries(dataset: str) -> Iterator[np.ndarray]:
    dtype = MMapIndexedDataset.Index(index_file_path(dataset)).dtype
    with open_file(data_file_path(dataset)) as data:
        while len(block := np.fromfile(data, dtype, 2**20)):
            yield block


def write_dataset(
    dataset: Path,
    sentences: int,
    dtype: type[np.signedinteger],
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
) -> None:
    """Write a dataset; it appears whole or not at all.

    Args:
        dataset: path without suffix.
        sentences: number of sentences.
        dtype: of the entries.
        blocks: for each block of sentences, their entries one after the other, (entries,), and
            how many each has, (sentences,).
    """
    index_path, data_path = index_file_path(str(dataset)), data_file_path(str(dataset))
    # The index appears last: without it, the dataset does not exist for fairseq.
    with replacing(Path(index_path)) as index_name, replacing(Path(data_path)) as data_name:
        with MMapIndexedDataset.Index.writer(str(index_name), dtype):
            pass  # this wrote the header
        with index_name.open("r+b") as index, data_name.open("wb") as data:
            index.seek(_COUNT_AT)
            index.write(np.int64(sentences).tobytes())
            written = 0
            for entries, sizes in blocks:
                entries = entries.astype(dtype, copy=False)
                addresses = data.tell() + (sizes.cumsum() - sizes) * entries.itemsize
                index.seek(_SIZES_AT + 4 * written)
                index.write(sizes.astype(np.int32).tobytes())
                index.seek(_SIZES_AT + 4 * sentences + 8 * written)
                index.write(addresses.astype(np.int64).tobytes())
                data.write(entries.tobytes())
                written += len(sizes)
