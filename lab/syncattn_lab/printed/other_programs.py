"""Read translations printed by Marian, Moses and Sockeye, and nothing else of their output.

::

    der Mann schläft ||| 0-0 1-1 2-2              Marian, --alignment: links of subwords
    der Mann ||| 0.9,0.1 0.2,0.8                  Marian, --alignment soft
    0 ||| der Mann schläft ||| F0= -1.2 ||| -1.2      Marian and Moses, n-best lists, from 0
    {"sentence_id": 1, "translation": "der Mann schläft", "score": 0.4}        Sockeye, json
    {"sentence_id": 1, "translations": ["der Mann schläft", "er schläft"]}     and an n-best list
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.text import read_lines

_BAR = " ||| "
_NUMBER = re.compile(r"\d{1,9}")
_LINKS = re.compile(r"(\d{1,9}-\d{1,9}(:[0-9.e+-]+)?( |$))*")
#: Probabilities of all subwords of the source, for each of the target and its end.
_SOFT = re.compile(r"([0-9.][0-9.e-]*,)+[0-9.][0-9.e-]*( ([0-9.][0-9.e-]*,)+[0-9.][0-9.e-]*)*")
#: What Sockeye calls the text, and the texts of an n-best list.
_TEXT, _TEXTS = "translation", "translations"


def find_reader(lines: list[str]) -> Callable[[str | Path], Iterator[str]] | None:
    """Return the reader for output of Marian, Moses or Sockeye, if most lines look so, or None.

    Args:
        lines: some of the file's lines, of which most must look like that program's.

    Returns:
        A function that yields the translations of the file with a path; None if the lines are not
        of one of these programs.
    """
    filled = [line for line in lines if line.strip()]
    if not filled:
        return None
    for is_line, reader in (
        (_is_nbest, read_nbest),
        (_is_aligned, read_aligned),
        (_is_sockeye, read_sockeye),
    ):
        if 2 * sum(map(is_line, filled)) > len(filled):
            return reader
    return None


def _is_nbest(line: str) -> bool:
    number, bar, rest = line.partition(_BAR)
    return bool(bar) and _NUMBER.fullmatch(number.strip()) is not None and _BAR.strip() in rest


def _is_aligned(line: str) -> bool:
    text, bar, links = f"{line} ".rpartition(_BAR)
    links = links.strip()
    return bool(bar) and any(pattern.fullmatch(links) for pattern in (_LINKS, _SOFT))


def _is_sockeye(line: str) -> bool:
    return _find_translation(line) is not None


def _find_translation(line: str) -> str | None:
    """Return the translation in a line of Sockeye's, the first of several; None in any other."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    several = row.get(_TEXTS)
    text = several[0] if isinstance(several, list) and several else row.get(_TEXT)
    return text if isinstance(text, str) else None


def have_columns(lines: list[str]) -> bool:
    """Tell whether most lines contain ``|||`` between spaces, as a separator of columns."""
    filled = [line for line in lines if line.strip()]
    return 2 * sum(_BAR in line for line in filled) > len(filled)


def read_aligned(path: str | Path) -> Iterator[str]:
    """Yield the translation in each line of ``TEXT ||| LINKS``.

    Raises:
        DataError: a line has no links, so that its text may have lost its end.
    """
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            yield ""
        elif _is_aligned(line):
            yield f"{line} ".rpartition(_BAR)[0]
        else:
            raise DataError(
                f"{path}:{number}: the line has no ' ||| ' with links, as the other lines have; "
                "give only translations, one on each line"
            )


def read_nbest(path: str | Path) -> Iterator[str]:
    """Yield the first hypothesis of each sentence of an n-best list.

    Raises:
        DataError: a line is none of such a list, or a sentence is missing.
    """
    expected = 0
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split(_BAR)
        if not _is_nbest(line):
            raise DataError(
                f"{path}:{number}: expected a line of an n-best list: 'NUMBER ||| TEXT ||| ...'"
            )
        sentence = int(columns[0])
        if sentence == expected:
            yield columns[1].strip()
            expected += 1
        elif sentence != expected - 1:
            raise DataError(
                f"{path}:{number}: expected sentence {expected}, got sentence {sentence}; give "
                "the list as the program printed it"
            )


def read_sockeye(path: str | Path) -> Iterator[str]:
    """Yield the translation in each line of Sockeye's JSON output.

    Raises:
        DataError: a line has no translation.
    """
    for number, line in enumerate(read_lines(path), 1):
        text = _find_translation(line)
        if text is None:
            raise DataError(
                f'{path}:{number}: expected JSON with a "{_TEXT}", as Sockeye prints it'
            )
        if "\n" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise DataError(f"{path}:{number}: the {_TEXT} is not a line of text")
        yield text
