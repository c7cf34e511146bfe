"""Binarise word alignments of sentence pairs, for the loss of guided alignment."""

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

#: Number of linked pairs from which it cannot be chance that no link has a 0.
_MANY = 10


class LinkedText(NamedTuple):
    """The source or target text of word-aligned sentence pairs.

    Attributes:
        text: the sentences in subwords.
        scheme: how the subwords are marked.
        sentences: the raw sentences that `spans` refer to; None: the subwords join to them.
        spans: the spans of the words of raw sentences; None: the words are found by the scheme.
    """

    text: Path
    scheme: str
    sentences: Path | None = None
    spans: Path | None = None

    def locate_words(self) -> Iterator[list[range]]:
        """Yield, for each sentence, the positions of the subwords of each word.

        Words of one unit share its subwords.
        """
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
    """Write word alignments as a fairseq dataset of links between subwords.

    A link between two words becomes links between all of their subwords.

    Args:
        path: the file of links between words, one sentence pair per line (`.link_lines`), counted
            from 0. Links that are only possible, and not sure, are left out.
        sides: the source and the target text.
        dataset: the path of the dataset to write, without suffix.

    Raises:
        DataError: a line is wrong, there are too many or too few lines, or many pairs have links
            and none has a 0, as if words were counted from 1.
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
