"""Read the dependency heads, labels and character spans of words, and check trees."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from ..base.errors import BadParse, DataError
from ..base.numbers import read_whole
from ..base.text import read_lines
from .spans import Span

SPLITS = ("train", "valid", "test")
"""The splits of a corpus, as fairseq-preprocess names them."""
LINKS = "align"
"""The part of file names that stands for word alignments, as in fairseq."""

SPANS = "spans"
"""The part of file names that stands for the character spans of words in raw sentences."""

_SPANS = re.compile("([0-9]{1,9}-[0-9]{1,9}( |$))*")
_HEADS = re.compile("[0-9]{1,9}(?: [0-9]{1,9})*")

POLICIES = ("stop", "drop")
"""What to do about a parse that does not fit its sentence: stop, or drop the parse."""


def read_heads(path: Path | str) -> Iterator[list[int] | None]:
    """Yield the dependency heads of each sentence, from 1, 0 = root; None without a parse.

    Errors are those of `parse_heads`.
    """
    for number, line in enumerate(read_lines(path), 1):
        yield parse_heads(line, path, number) or None


def read_labels(path: Path | str) -> Iterator[list[str] | None]:
    """Yield the labels of each sentence, one for each word; None without a parse (empty line)."""
    for line in read_lines(path):
        yield line.split() or None


def read_spans(path: Path | str) -> Iterator[list[Span]]:
    """Yield the character spans of the words of each sentence; see `parse_spans`."""
    for number, line in enumerate(read_lines(path), 1):
        yield parse_spans(line, path, number)


def parse_spans(line: str, path: Path | str, number: int) -> list[Span]:
    """Return the character spans of words on a line such as ``0-3 4-7``.

    `DataError` names path and line of bad spans. They are in characters of the sentence, from 0; a
    span ends before its second number.
    """
    if not _SPANS.fullmatch(line):
        raise DataError(
            f"{path}:{number}: expected the characters of each word, counted from 0, such as 0-3 "
            f"4-7, got {line[:60]!r}; leave the line empty if there is no parse"
        )
    pairs = (span.split("-") for span in line.split())
    return [(int(begin), int(end)) for begin, end in pairs]


def parse_heads(line: str, path: Path | str, number: int) -> list[int]:
    """Return the dependency heads on a line; raise `DataError` if one is not an integer."""
    try:
        if _HEADS.fullmatch(line):
            return [*map(int, line.split(" "))]  # much faster
        return [read_whole(head) for head in line.split()]
    except ValueError:
        raise DataError(
            f"{path}:{number}: expected one integer per word, got {line[:60]!r}; write 0 "
            "for the root, k if the parent is the k-th word, an empty line if there is no parse"
        ) from None


MIN_PARSED = 0.1
"""Default for the smallest share of sentences with a parse; less looks like a mistake."""


def check_parsed(where: Path | str, parsed: int, sentences: int, least: float) -> None:
    """Raise `DataError` if too few sentences have a parse fitting the sentence's words.

    Args:
        where: the file of the parses, for the message.
        parsed: the number of sentences with a fitting parse.
        sentences: the number of sentences with words.
        least: the lowest allowed share, from 0 to 1.
    """
    if parsed < least * sentences:
        raise DataError(
            f"{where}: only {parsed} of {sentences} sentences have a parse that fits the text; "
            "check that the parses were made from this text, or lower --min-parsed"
        )


def check_tree(heads: Sequence[int]) -> None:
    """Raise `BadParse` unless a sentence's dependency heads form one tree; takes linear time."""
    size = len(heads)
    for head in (min(heads, default=0), max(heads, default=0)):
        if not 0 <= head <= size:
            raise BadParse("head out of range", f"head {head} is out of range 0..{size}")
    roots = heads.count(0)
    if roots != 1:
        raise BadParse(
            "several roots" if roots else "no root",
            f"{roots} words have head 0 (the root), but a tree has exactly one root",
        )
    walked = [0] * (size + 1)  # the walk that first reached each word
    for walk in range(1, size + 1):
        word = walk
        while word and not walked[word]:
            walked[word] = walk
            word = heads[word - 1]
        if word and walked[word] == walk:
            raise BadParse(
                "cycle", f"the heads form a cycle: following them from word {word} leads back to it"
            )


def are_trees(sentences: Sequence[Sequence[int]]) -> bool:
    """Return whether the dependency heads of every sentence form one tree.

    All sentences are checked at once, faster than by `check_tree`.
    """
    import numpy as np  # commands that read parses begin without it

    sizes = np.array([len(heads) for heads in sentences], np.int64)
    try:
        heads = np.fromiter(chain.from_iterable(sentences), np.int64, sizes.sum())
    except OverflowError:
        return False
    ends = sizes.cumsum()
    if (heads < 0).any() or (heads > sizes.repeat(sizes)).any():
        return False
    roots = heads == 0
    before = np.append(0, roots.cumsum())
    if (before[ends] - before[ends - sizes] != (sizes > 0)).any():
        return False
    columns = np.arange(len(heads))
    reached = np.where(roots, columns, (ends - sizes).repeat(sizes) + heads - 1)
    for _ in range(int(sizes.max(initial=0)).bit_length()):
        reached = reached[reached]  # twice as many steps up
    return bool(roots[reached].all())
