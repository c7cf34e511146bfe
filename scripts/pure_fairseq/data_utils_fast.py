# Copyright (c) Facebook, Inc. and its affiliates.
#
# This source code is licensed under the MIT license of fairseq.
"""fairseq's ``data/data_utils_fast.pyx`` in plain Python."""

from collections.abc import Callable

import numpy as np


def batch_by_size_vec(
    indices: np.ndarray,
    num_tokens_vec: np.ndarray,
    max_tokens: int,
    max_sentences: int,
    bsz_mult: int,
) -> list[np.ndarray]:
    """Split ``indices`` into batches.

    Args:
        indices: of sentences, in order.
        num_tokens_vec: the length of each.
        max_tokens: of a batch with its padding; 0 or less for any number.
        max_sentences: of a batch; 0 or less for any number.
        bsz_mult: a batch has fewer sentences or a multiple of this many.
    """
    if len(indices) == 0:
        return []
    assert max_tokens <= 0 or np.max(num_tokens_vec) <= max_tokens, (
        f"Sentences lengths should not exceed max_tokens={max_tokens}"
    )
    # The last batch is [start, ends[-1]). What follows it, up to here, is the tail, which joins the
    # batch once both have a size that bsz_mult allows.
    ends = [0]
    start = batch_longest = tail_longest = 0
    for position, length in enumerate(num_tokens_vec.tolist()):
        if length > tail_longest:
            tail_longest = length
        longest = batch_longest if batch_longest > tail_longest else tail_longest
        sentences = position + 1 - start
        if sentences > max_sentences > 0 or sentences * longest > max_tokens > 0:
            if tail_longest * (position + 1 - ends[-1]) > max_tokens > 0:
                ends.append(position)
                tail_longest = length
            start = ends[-1]
            ends.append(position + 1)
            batch_longest, tail_longest = tail_longest, 0
        elif sentences < bsz_mult or sentences % bsz_mult == 0:
            ends[-1] = position + 1
            batch_longest, tail_longest = longest, 0
    return np.split(indices, ends[:-1] if ends[-1] == len(indices) else ends)


def batch_by_size_fn(
    indices: np.ndarray,
    num_tokens_fn: Callable[[int], int],
    max_tokens: int,
    max_sentences: int,
    bsz_mult: int,
) -> list[np.ndarray]:
    """Split ``indices`` into batches, by a function for the length of a sentence.

    Args:
        indices: the sentences, in order.
        num_tokens_fn: returns the length of a sentence.
        max_tokens: of a batch with its padding; 0 or less for any number.
        max_sentences: of a batch; 0 or less for any number.
        bsz_mult: a batch has fewer sentences or a multiple of this many.
    """
    lengths = np.fromiter(map(num_tokens_fn, indices), dtype=np.int64, count=len(indices))
    return batch_by_size_vec(indices, lengths, max_tokens, max_sentences, bsz_mult)


def batch_fixed_shapes_fast(
    indices: np.ndarray, num_tokens_fn: Callable[[int], int], fixed_shapes_sorted: np.ndarray
) -> list[list[int]]:
    """Split ``indices`` into batches within fixed shapes, given as sentences and tokens."""
    shapes = fixed_shapes_sorted.tolist()
    batches: list[list[int]] = []
    batch: list[int] = []
    longest = 0
    for index in indices.tolist():
        longest = max(longest, num_tokens_fn(index))
        if not any(len(batch) < most and longest <= tokens for most, tokens in shapes):
            batches.append(batch)
            batch, longest = [], 0
        batch.append(index)
    return [*batches, batch] if batch else batches
