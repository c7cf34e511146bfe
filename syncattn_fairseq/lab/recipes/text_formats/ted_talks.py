"""IWSLT's training text of TED talks, ``train.tags.de-en.de``: sentences between tagged notes.

It is read as in fairseq's recipes for IWSLT14 and IWSLT17, which give the usual 160,239 pairs.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from ....base.text import join_line
from .lines import decoded_lines
from .segments import read_segments

_NOTE = re.compile("<(?:url>|talkid>|keywords>|speaker>|reviewer|translator|/?doc)")
_TAG = re.compile("</?(?:title|description)>")


def read_ted_talks(file: BinaryIO, name: str) -> Iterator[str]:
    """Read all lines except notes about talks; titles and descriptions count as text."""
    for line in decoded_lines(file, name):
        if not _NOTE.search(line):
            yield join_line(_TAG.sub("", line))


def read_ted_segments(file: BinaryIO, name: str) -> Iterator[str]:
    """Read development and test sets, with straight apostrophes as in these recipes.

    Raises:
        DataError: as `read_segments`.
    """
    for segment in read_segments(file, name):
        yield segment.replace("\u2019", "'")
