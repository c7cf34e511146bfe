"""Word-level dependency heads and labels: reading them, and checking that heads are a tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..base.errors import BadParse, DataError
from ..base.files import read_lines
from ..base.numbers import read_whole

POLICIES = ("stop", "drop")
"""What a parse that does not fit its sentence may do."""


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
        return [read_whole(head) for head in line.split()]
    except ValueError:
        raise DataError(
            f"{path}:{number}: expected one integer per word, got {line[:60]!r}; "
            "0 is the root, k the k-th word, an empty line no parse"
        ) from None


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
