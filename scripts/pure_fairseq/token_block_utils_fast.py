# Copyright (c) Facebook, Inc. and its affiliates.
#
# This source code is licensed under the MIT license of fairseq.
"""fairseq's ``data/token_block_utils_fast.pyx`` in plain Python, for language models."""

import numpy as np


def _get_slice_indices_fast(
    sizes: np.ndarray, break_mode: str | None, block_size: int, document_sep_len: int
) -> np.ndarray:
    """Return begin and end of the text's blocks, a row for each block.

    Args:
        sizes: the length of each sentence.
        break_mode: ``none``, ``complete`` (sentences), ``complete_doc`` or ``eos``.
        block_size: the length of a block.
        document_sep_len: the length of the sentence that ends a document.
    """
    ends = sizes.cumsum()
    if break_mode is None or break_mode == "none":
        total = int(sizes.sum())
        starts = np.arange(0, total, block_size)
        return np.stack([starts, np.minimum(starts + block_size, total)], axis=1)
    if break_mode == "eos":
        return np.stack([ends - sizes, ends], axis=1)
    if break_mode not in ("complete", "complete_doc"):
        raise ValueError("Invalid break_mode: " + break_mode)
    documents = break_mode == "complete_doc"
    shortest = 2 if documents else 1
    blocks = []
    start = size = 0
    for length in sizes.tolist():
        ends_document = documents and length == document_sep_len
        if ends_document or (size + length > block_size and size):
            if size >= shortest:
                blocks.append((start, start + size))
            start += size
            size = 0
        if ends_document:
            start += length
        else:
            size += length
    if size >= shortest:
        blocks.append((start, start + size))
    return np.array(blocks, dtype=np.int64).reshape(len(blocks), -1)


def _get_block_to_dataset_index_fast(sizes: np.ndarray, slice_indices: np.ndarray) -> np.ndarray:
    """Return each block's first sentence, its start inside, and the block's last sentence."""
    starts = sizes.cumsum() - sizes
    begins, ends = slice_indices[:, 0], slice_indices[:, 1]

    def find_sentence(places: np.ndarray) -> np.ndarray:
        """Return the first sentence with its start at a place, or else the sentence around."""
        found = np.searchsorted(starts, places, "left")
        exact = starts[np.minimum(found, len(starts) - 1)] == places
        return np.where(exact, found, found - 1)

    first = find_sentence(begins)
    last = np.where(ends > begins, find_sentence(ends - 1), first)
    return np.stack([first, begins - starts[first], last], axis=1).astype(np.int64)
