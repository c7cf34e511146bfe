"""WMT's SGML (``newstest2014-deen-src.en.sgm``) and IWSLT's XML of development and test sets.

Usually neither is well-formed XML: the text has ``&`` and ``<`` without escapes.
"""

import html
import re
from collections.abc import Iterator
from typing import BinaryIO

from ....base.errors import DataError
from ....base.text import join_line
from .lines import decoded_lines

_TAG = re.compile(r"<seg\b[^<>]*>|</seg\s*>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")


def read_segments(file: BinaryIO, name: str) -> Iterator[str]:
    """Read the text of each ``<seg>``, in the order of the file, and resolve XML's entities.

    Raises:
        DataError: a segment has no end or no beginning.
    """
    text = "".join(decoded_lines(file, name))  # test sets: a megabyte or so
    begin = None
    for tag in _TAG.finditer(text):
        if tag[0].startswith("</") == (begin is None):
            raise _unpaired(name, text, tag if begin is None else begin)
        if begin is None:
            begin = tag
        else:
            yield join_line(_ENTITY.sub(_character, text[begin.end() : tag.start()]))
            begin = None
    if begin is not None:
        raise _unpaired(name, text, begin)


def _character(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def _unpaired(name: str, text: str, tag: re.Match[str]) -> DataError:
    line = text.count("\n", 0, tag.start()) + 1
    return DataError(f"{name}:{line}: {tag[0][:60]!r} has no partner; give each <seg> its </seg>")
