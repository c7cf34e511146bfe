"""Binarise links between the words of sentence pairs, for guided alignment."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, product
from pathlib import Path

import numpy as np

from ..base.errors import DataError
from ..base.text import count_lines, read_lines
from .mmap_blocks import write_dataset
from .words import count_subwords

_LINK = re.compile(r"(\d+)([-?])(\d+)", re.ASCII)


def binarise_links(
    path: Path, texts: Sequence[Path], schemes: Sequence[str], dataset: Path
) -> None:
    """Link all subwords of words that are linked, and write the links as fairseq reads them.

    Args:
        path: the links, one sentence pair per line: ``i-j``, or ``i?j`` for one that is only
            possible, which does not count; words of source and target, from 0.
        texts, schemes: source and target in subwords, and how these are marked.
        dataset: path without suffix.

    Raises:
        DataError: a line is wrong, or there are too many or too few.
    """
    count_lines(*texts, path)
    write_dataset(dataset, np.int32, _spread(path, texts, schemes))


def _spread(
    path: Path, texts: Sequence[Path], schemes: Sequence[str]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    lines = zip(read_lines(path), *map(read_lines, texts), strict=True)
    for number, (links, *pair) in enumerate(lines, 1):
        source, target = (
            _locate_words(line.split(), scheme) for line, scheme in zip(pair, schemes, strict=True)
        )
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


def _locate_words(pieces: Sequence[str], scheme: str) -> list[range]:
    lengths = count_subwords(pieces, scheme)
    return [range(end - size, end) for size, end in zip(lengths, accumulate(lengths), strict=True)]
