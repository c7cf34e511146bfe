"""Word-level dependency heads and labels: reading them, and checking that heads are a tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from ..base.errors import BadParse, DataError
from ..base.files import read_lines


def read_heads(path: Path | str) -> Iterator[list[int] | None]:
    """Yield the heads of each sentence: 1-based, 0 = root; None for an empty line, no parse.

    Raises:
        DataError: naming the line that holds something else than integers.
    """
    for number, line in enumerate(read_lines(path), 1):
        yield parse_heads(line, path, number) or None


def read_labels(path: Path | str) -> Iterator[list[str] | None]:
    """Yield the dependency labels of each sentence, one per word; None for an empty line, no parse.

    Raises:
        DataError: naming the line that is not UTF-8.
    """
    for line in read_lines(path):
        yield line.split() or None


def parse_heads(line: str, path: Path | str, number: int) -> list[int]:
    """Return the heads on a line.

    Raises:
        DataError: naming path and number of a line that holds something else than integers.
    """
    try:
        return [int(head) for head in line.split()]
    except ValueError:
        raise DataError(
            f"{path}:{number}: expected one integer per word, got {line[:60]!r}; "
            "0 is the root, k the k-th word, an empty line no parse"
        ) from None


def heads_of_lines(lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the heads on many lines, (words of all lines,), and how many each has, (lines,).

    A line that holds something else, or numbers of astronomical size, counts as one head of -1,
    which is no tree: `parse_heads` tells what is wrong.
    """
    sizes = np.array([len(line.split()) for line in lines])
    text = "\n".join(lines)
    if not text.encode().translate(None, b"0123456789 \n"):
        # White space alone would be read as a 0.
        return np.fromstring(text, np.int64, sep=" ")[: sizes.sum()], sizes
    rows = []
    for line in lines:
        try:
            rows.append(np.array([int(head) for head in line.split()], np.int64))
        except (ValueError, OverflowError):
            rows.append(np.array([-1]))
    return np.concatenate(rows), np.array([len(row) for row in rows])


def labels_of_lines(lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels on many lines, (words of all lines,), and how many each has, (lines,)."""
    rows = [line.split() for line in lines]
    labels = np.array(list(chain.from_iterable(rows)), dtype=object)
    return labels, np.array([len(row) for row in rows])


MIN_PARSED = 0.1
"""The smallest share of sentences with a parse that is taken for what the user wants."""


def check_parsed(where: Path | str, parsed: int, sentences: int, least: float) -> None:
    """Check that enough sentences have a parse that can be used.

    Args:
        where: the file of the parses.
        parsed: sentences with one.
        sentences: all that have words.
        least: the smallest share.

    Raises:
        DataError: there are fewer.
    """
    if parsed < least * sentences:
        raise DataError(
            f"{where}: only {parsed} of {sentences} sentences have a parse that fits the text; is "
            "it of this text? if it is, set --min-parsed"
        )


def check_tree(heads: Sequence[int]) -> None:
    """Check that the heads of one sentence form one tree, in linear time.

    Raises:
        BadParse: for a head out of range, no root, several roots, or a cycle.
    """
    size = len(heads)
    for head in heads:
        if not 0 <= head <= size:
            raise BadParse("head out of range", f"head {head} is out of range 0..{size}")
    roots = heads.count(0)
    if roots != 1:
        raise BadParse(
            "several roots" if roots else "no root", f"{roots} words have head 0, exactly one must"
        )
    walked = [0] * (size + 1)  # the walk that first came by each word
    for walk in range(1, size + 1):
        word = walk
        while word and not walked[word]:
            walked[word] = walk
            word = heads[word - 1]
        if word and walked[word] == walk:
            raise BadParse("cycle", f"following the heads from word {word} leads back to it")


def are_trees(heads: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Tell for many sentences at once where `check_tree` finds nothing wrong.

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
    # Words are counted through from 1; 0 is above every root, and above itself. Each round doubles
    # the number of steps that are taken upwards.
    above = np.append(0, np.where(in_range & ~is_root, before + heads, 0))
    for _ in range(int(sizes.max(initial=0)).bit_length()):
        above = above[above]
    faulty = ~in_range | (above[1:] > 0)
    faults = np.bincount(sentence[faulty], minlength=len(sizes))
    roots = np.bincount(sentence[is_root], minlength=len(sizes))
    return (faults == 0) & (roots == 1)
