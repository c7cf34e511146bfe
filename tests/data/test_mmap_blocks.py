from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.data.indexed_dataset import IndexedDatasetBuilder, MMapIndexedDatasetBuilder
from hypothesis import example, given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.mmap_blocks import check_dataset, check_symbols, write_dataset

sentences = st.lists(st.integers(-3, 32_767), max_size=5)


def write_items(path: Path, items: Iterable[Any], dtype: type = np.int16) -> None:
    """Write a dataset with fairseq's own builder."""
    builder = MMapIndexedDatasetBuilder(f"{path}.bin", dtype=dtype)
    for item in items:
        builder.add_item(torch.as_tensor(item))
    builder.finalize(f"{path}.idx")


@given(st.lists(st.lists(sentences, max_size=4), max_size=4), st.sampled_from([np.int16, np.int32]))
@example([], np.int16)
@example([[[1, 2], [], [3]], [[]]], np.int16)
def test_files_are_those_of_fairseq(tmp_path_factory, blocks, dtype):
    folder = tmp_path_factory.mktemp("datasets")
    write_items(folder / "theirs", chain.from_iterable(blocks), dtype)
    entries = [np.array(list(chain.from_iterable(block)), np.int64) for block in blocks]
    sizes = [np.array([len(row) for row in block], np.int64) for block in blocks]
    write_dataset(folder / "ours", dtype, zip(entries, sizes, strict=True))
    for suffix in ("bin", "idx"):
        ours, theirs = ((folder / f"{name}.{suffix}").read_bytes() for name in ("ours", "theirs"))
        assert ours == theirs
    check_dataset(f"{folder}/ours")


@pytest.mark.parametrize(
    ("place", "damage"),
    [
        (26, np.array([-2, 6, 1], np.int32)),  # the sum stays the same
        (26, np.array([1, 3, 1], np.int32)),
        (38, np.array([2, 4, 8], np.int64)),
        (38, np.array([0, -4, 8], np.int64)),
        (38, np.array([0, 10**12, 8], np.int64)),
    ],
)
def test_an_index_that_does_not_add_up_is_damaged(tmp_path, place, damage):
    write_dataset(tmp_path / "x", np.int16, [(np.arange(5), np.array([2, 2, 1]))])
    index = bytearray((tmp_path / "x.idx").read_bytes())
    index[place : place + damage.nbytes] = damage.tobytes()
    (tmp_path / "x.idx").write_bytes(index)
    with pytest.raises(DataError, match=r"x\.idx: the file is damaged or cut short; binarise"):
        check_dataset(f"{tmp_path}/x")


def test_datasets_of_other_kinds_are_not_checked(tmp_path):
    builder = IndexedDatasetBuilder(f"{tmp_path}/x.bin")
    builder.add_item(torch.tensor([1, 2]))
    builder.finalize(f"{tmp_path}/x.idx")
    check_dataset(f"{tmp_path}/x")
    check_symbols(f"{tmp_path}/x", 0)
    (tmp_path / "x.idx").write_bytes(b"HUFFIDX\x00\x00")
    check_dataset(f"{tmp_path}/x")
    check_symbols(f"{tmp_path}/x", 0)


@pytest.mark.parametrize("wrong", [9, -1])
def test_words_beyond_the_dictionary_are_refused(tmp_path, wrong):
    entries = np.array([0, 8, wrong])
    write_dataset(tmp_path / "x", np.int32, [(entries[:2], np.array([1, 1]))])
    check_symbols(f"{tmp_path}/x", 9)
    write_dataset(tmp_path / "x", np.int32, [(entries, np.array([1, 2]))])
    message = r"x\.bin: has words beyond the 9 of the dictionary; binarise the text again with this"
    with pytest.raises(DataError, match=message):
        check_symbols(f"{tmp_path}/x", 9)


def test_a_fault_leaves_nothing(tmp_path):
    def blocks():  # type: ignore[no-untyped-def]
        yield np.array([1, 2]), np.array([2])
        raise KeyError

    with pytest.raises(KeyError):
        write_dataset(tmp_path / "made", np.int16, blocks())
    assert not list(tmp_path.iterdir())
