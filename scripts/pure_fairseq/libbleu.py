# Copyright (c) Facebook, Inc. and its affiliates.
#
# This source code is licensed under the MIT license of fairseq.
"""fairseq's ``clib/libbleu`` in plain Python, called as ctypes calls the library."""

import ctypes
from collections import Counter
from typing import Any


def bleu_zero_init(stat: Any) -> None:
    """Set all counts to 0."""
    for name, _ in stat._obj._fields_:
        setattr(stat._obj, name, 0)


def bleu_one_init(stat: Any) -> None:
    """Set the counts of n-grams of two words and more to 1, all other counts to 0."""
    bleu_zero_init(stat)
    for order in (2, 3, 4):
        setattr(stat._obj, f"count{order}", 1)
        setattr(stat._obj, f"match{order}", 1)


def bleu_add(
    stat: Any,
    reference_length: ctypes.c_size_t,
    reference: ctypes.c_void_p,
    length: ctypes.c_size_t,
    hypothesis: ctypes.c_void_p,
    pad: ctypes.c_int,
    eos: ctypes.c_int,
) -> None:
    """Add the counts of a sentence, given as the addresses of two arrays of word indices.

    Args:
        stat: a pointer to the counts.
        reference_length: the number of words of the reference.
        reference: the address of the reference.
        length: the number of words of the hypothesis.
        hypothesis: the address of the hypothesis.
        pad: the index of padding, which is removed at the ends.
        eos: the index of the end of sentence, which is removed at the end.
    """
    counts = stat._obj
    expected = _trim(_read(reference, reference_length), pad.value, eos.value)
    found = _trim(_read(hypothesis, length), pad.value, eos.value)
    counts.reflen += len(expected)
    counts.predlen += len(found)
    for order in (1, 2, 3, 4):
        ours, theirs = _count(found, order), _count(expected, order)
        for counter, added in (("count", ours), ("match", ours & theirs)):
            name = f"{counter}{order}"
            setattr(counts, name, getattr(counts, name) + added.total())


def _read(place: ctypes.c_void_p, length: ctypes.c_size_t) -> list[int]:
    return (
        list((ctypes.c_int * length.value).from_address(place.value or 0)) if length.value else []
    )


def _trim(words: list[int], pad: int, eos: int) -> list[int]:
    """Take padding from the left, and padding and ends from the right, but for the first word."""
    start, end = 0, len(words)
    while start < end and words[start] == pad:
        start += 1
    while end - start > 1 and words[end - 1] in (pad, eos):
        end -= 1
    return words[start:end]


def _count(words: list[int], order: int) -> Counter[tuple[int, ...]]:
    return Counter(zip(*(words[place:] for place in range(order)), strict=False))
