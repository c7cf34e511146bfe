"""Binarise links between the words of sentence pairs, for guided alignment."""

import sys
from collections.abc import Iterator, Sequence
from itertools import product, repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..base.errors import BadParse, DataError, naming
from ..base.text import count_lines, read_lines
from .link_lines import read_links
from .mmap_blocks import write_dataset
from .parses import parse_spans
from .spans import find_runs
from .words import split_units

#: How many pairs have links if none of them can lack a 0 by chance.
_MANY = 10


class LinkedText(NamedTuple):
    """The source or target text of linked sentence pairs.

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
            runs = find_runs(units.starts)
            yield [range(*runs[unit]) for unit in units.of_words]


def binarise_links(path: Path, sides: Sequence[LinkedText], dataset: Path) -> None:
    """Expand word links to links of all their subwords, and write a dataset for fairseq.

    Args:
        path: the links, one sentence pair per line, see `.link_lines`: words of source and target,
            from 0. Those that are only possible do not count.
        sides: source and target.
        dataset: path without suffix.

    Raises:
        DataError: a line is wrong, there are too many or too few, or the links of many pairs count
            from 1.
    """
    others = [side[2:] for side in sides]
    more = [path for paths in others for path in paths if path]
    count_lines(*(side.text for side in sides), path, *more)
    write_dataset(dataset, np.int32, _spread(path, sides))


def _spread(path: Path, sides: Sequence[LinkedText]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    linked, from_zero = 0, False
    words = (side.locate_words() for side in sides)
    for number, (line, source, target) in enumerate(zip(read_lines(path), *words, strict=True), 1):
        with naming(f"{path}:{number}"):
            links = read_links(line)
        linked += bool(links)
        from_zero = from_zero or any(0 in link[:2] for link in links)
        numbers: list[int] = []
        for one, other, is_sure in links:
            if one >= len(source) or other >= len(target):
                raise DataError(
                    f"{path}:{number}: the link {one}-{other} is not between the {len(source)} "
                    f"words of the source and the {len(target)} words of the target; write "
                    "SOURCE-TARGET, counted from 0"
                )
            if is_sure:
                for subwords in product(source[one], target[other]):
                    numbers += subwords
        yield np.array(numbers), np.array([len(numbers)])
    if linked and not from_zero:
        message = (
            f"{path}: {linked} sentence pairs have links, but no link has the number 0, so words "
            "seem to be counted from 1; count words from 0"
        )
        if linked >= _MANY:
            raise DataError(message)
        print(f"warning: {message}", file=sys.stderr)
