"""Treebanks in CoNLL-U: the words of each sentence, and in lines of their own heads and labels."""

from collections.abc import Iterator
from typing import BinaryIO

from ....base.text import join_line
from ....parsing.formats import FORMATS, Analysis
from .lines import decoded_lines


def read_words(file: BinaryIO, name: str) -> Iterator[str]:
    """Read the words; white space in a word becomes ``_``, so that each is one word.

    Raises:
        DataError: a line is not in the format; names the line.
    """
    for analysis in _read(file, name):
        yield " ".join(join_line(word).replace(" ", "_") or "_" for word in analysis.words)


def read_heads(file: BinaryIO, name: str) -> Iterator[str]:
    """Read the heads, 0 for the root; an empty line is no tree.

    Raises:
        DataError: as `read_words`.
    """
    for analysis in _read(file, name):
        yield " ".join(map(str, analysis.heads or ()))


def read_labels(file: BinaryIO, name: str) -> Iterator[str]:
    """Read the labels; an empty line is no tree.

    Raises:
        DataError: as `read_words`.
    """
    for analysis in _read(file, name):
        yield " ".join(analysis.labels)


def _read(file: BinaryIO, name: str) -> Iterator[Analysis]:
    return (x for x in FORMATS["conllu"](decoded_lines(file, name), name) if x.words)
