"""Binarise links between the words of sentence pairs, for guided alignment."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, product, repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..base.errors import BadParse, DataError
from ..base.text import count_lines, read_lines
from .mmap_blocks import write_dataset
from .parses import parse_spans
from .words import split_units

_LINK = re.compile(r"(\d+)([-?])(\d+)", re.ASCII)


class LinkedText(NamedTuple):
    """One side of sentence pairs whose words are linked.

    Attributes:
        text: the sentences in subwords.
        scheme: how these are marked.
        sentences: raw sentences as people wrote them, if `spans` are of these.
        spans: where the words of raw sentences are; None: as the scheme finds them.
    """

    text: Path
    scheme: str
    sentences: Path | None = None
    spans: Path | None = None

    def locate_words(self) -> Iterator[list[range]]:
        """Yield where the subwords of each word of a sentence are; words of a unit share them."""
        paths = self.sentences, self.spans
        others = (read_lines(path) if path else repeat("") for path in paths)
        lines = zip(read_lines(self.text), *others)  # noqa: B905  (repeat)
        for number, (line, sentence, places) in enumerate(lines, 1):
            pieces = line.split()
            spans = parse_spans(places, self.spans, number) if self.spans and places else None
            try:
                units = split_units(pieces, self.scheme, spans, sentence)
            except BadParse as fault:
                raise DataError(f"{self.spans}:{number}: {fault}") from None
            begins = [place for place, starts in enumerate(units.starts) if starts]
            bounds = [*pairwise([*begins, len(pieces)])]
            yield [range(*bounds[unit]) for unit in units.of_words]


def binarise_links(path: Path, sides: Sequence[LinkedText], dataset: Path) -> None:
    """Link all subwords of words that are linked, and write the links as fairseq reads them.

    Args:
        path: the links, one sentence pair per line: ``i-j``, or ``i?j`` for one that is only
            possible, which does not count; words of source and target, from 0.
        sides: source and target.
        dataset: path without suffix.

    Raises:
        DataError: a line is wrong, or there are too many or too few.
    """
    others = [side[2:] for side in sides]
    more = [path for paths in others for path in paths if path]
    count_lines(*(side.text for side in sides), path, *more)
    write_dataset(dataset, np.int32, _spread(path, sides))


def _spread(path: Path, sides: Sequence[LinkedText]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    words = (side.locate_words() for side in sides)
    for number, (links, source, target) in enumerate(zip(read_lines(path), *words, strict=True), 1):
        numbers: list[int] = []
        for link in links.split():
            match = _LINK.fullmatch(link)
            if not match or int(match[1]) >= len(source) or int(match[3]) >= len(target):
                raise DataError(
                    f"{path}:{number}: {link}: no link between the {len(source)} words of the "
                    f"source and the {len(target)} of the target; write i-j, counted from 0"
                )
            if match[2] == "-":
                for subwords in product(source[int(match[1])], target[int(match[3])]):
                    numbers += subwords
        yield np.array(numbers), np.array([len(numbers)])
