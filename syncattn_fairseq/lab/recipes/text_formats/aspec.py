"""ASPEC's Japanese-English texts: ``score ||| document ||| number ||| Japanese ||| English``."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from ....base.errors import DataError
from ....base.text import join_line
from .lines import decoded_lines

#: A number or date in full-width brackets at the end of a Japanese sentence: noise of the source.
_DATE = re.compile("(?<=.)［[０-９．]+］$")


def read_aspec(file: BinaryIO, name: str, languages: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Read the last two columns; development and test sets have no score.

    Raises:
        DataError: a line has fewer than two columns, or a language is neither ja nor en.
    """
    if set(languages) != {"ja", "en"}:
        raise DataError(
            f"{name}: the languages of aspec are ja and en, not {' and '.join(languages)}"
        )
    for number, line in enumerate(decoded_lines(file, name), 1):
        columns = line.rsplit("|||", 2)
        if len(columns) < 2:
            raise DataError(f"{name}:{number}: no ||| between Japanese and English")
        pair = join_line(columns[-2]), join_line(columns[-1])
        yield pair if languages[0] == "ja" else pair[::-1]


def read_aspec_undated(
    file: BinaryIO, name: str, languages: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    """Read like `read_aspec`, but remove dates at the end of Japanese sentences, as WAT's baseline.

    Raises:
        DataError: as `read_aspec`.
    """
    japanese = languages.index("ja") if "ja" in languages else 0
    for pair in read_aspec(file, name, languages):
        sides = list(pair)
        sides[japanese] = _DATE.sub("", sides[japanese]).rstrip()
        yield sides[0], sides[1]
