"""Read many lines of heads or labels at once, as :mod:`.parses` does for one sentence."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from ..base.numbers import read_whole


def parse_heads_of_lines(lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the heads on many lines, (words of all lines,), and how many each has, (lines,).

    A line that holds anything else, or astronomically large numbers, counts as one head of -1,
    which is not a tree; `.parses.parse_heads` says what is wrong.
    """
    sizes = np.array([len(line.split()) for line in lines], np.int64)
    text = "\n".join(lines)
    if not text.encode().translate(None, b"0123456789 \n"):
        # White space alone would be read as a 0.
        return np.fromstring(text, np.int64, sep=" ")[: sizes.sum()], sizes
    rows = []
    for line in lines:
        try:
            rows.append(np.array([read_whole(head) for head in line.split()], np.int64))
        except ValueError:
            rows.append(np.array([-1]))
    return np.concatenate(rows), np.array([len(row) for row in rows])


def parse_labels_of_lines(lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels on many lines, (words of all lines,), and how many each has, (lines,)."""
    rows = [line.split() for line in lines]
    labels = np.array(list(chain.from_iterable(rows)), dtype=object)
    return labels, np.array([len(row) for row in rows])


def are_trees(heads: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return, for many sentences at once, where `.parses.check_tree` finds nothing wrong.

    Args:
        heads: (words of all sentences,) heads of one sentence after the other.
        sizes: (sentences,) number of words of each.

    Returns:
        (sentences,) booleans.
    """
    sentence = np.repeat(np.arange(len(sizes)), sizes)
    before = np.repeat(sizes.cumsum() - sizes, sizes)
    in_range = (heads >= 0) & (heads <= sizes[sentence])
    is_root = heads == 0
    # Words are numbered from 1 across sentences; 0 is above every root, and above itself. Each
    # round doubles the number of steps upwards.
    above = np.append(0, np.where(in_range & ~is_root, before + heads, 0))
    for _ in range(int(sizes.max(initial=0)).bit_length()):
        above = above[above]
    faulty = ~in_range | (above[1:] > 0)
    faults = np.bincount(sentence[faulty], minlength=len(sizes))
    roots = np.bincount(sentence[is_root], minlength=len(sizes))
    return (faults == 0) & (roots == 1)
