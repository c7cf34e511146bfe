"""Formats in archives: one reader for each, from a binary stream to sentences of one line.

A reader gets the stream and its name, which its `DataError` names with the line.
"""

from collections.abc import Callable, Iterator
from typing import BinaryIO

from .aspec import read_aspec, read_aspec_undated
from .lines import read_latin1, read_plain
from .segments import read_segments
from .ted_talks import read_ted_segments, read_ted_talks
from .treebank import read_heads, read_labels, read_words

#: Formats with one language. Readers keep empty sentences: both sides are read line by line.
TEXTS: dict[str, Callable[[BinaryIO, str], Iterator[str]]] = {
    "plain": read_plain,
    "latin1": read_latin1,
    "sgm": read_segments,
    "iwslt_tags": read_ted_talks,
    "iwslt_xml": read_ted_segments,
    "conllu": read_words,
    "conllu_heads": read_heads,
    "conllu_labels": read_labels,
}

#: Formats with several languages. Readers yield pairs of the two given languages, in that order.
PAIRS: dict[str, Callable[[BinaryIO, str, tuple[str, str]], Iterator[tuple[str, str]]]] = {
    "aspec": read_aspec,
    "aspec_undated": read_aspec_undated,
}

__all__ = ["PAIRS", "TEXTS"]
