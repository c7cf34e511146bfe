"""Binarise links between the words of sentence pairs, for guided alignment."""

import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate, product
from pathlib import Path

import numpy as np

from ..base.errors import DataError, naming
from ..base.text import count_lines, read_lines
from .link_lines import read_links
from .mmap_blocks import write_dataset
from .words import count_subwords

#: How many pairs have links if none of them can lack a 0 by chance.
_MANY = 10


def binarise_links(
    path: Path, texts: Sequence[Path], schemes: Sequence[str], dataset: Path
) -> None:
    """Link all subwords of words that are linked, and write the links as fairseq reads them.

    Args:
        path: the links, one sentence pair per line, see `.link_lines`: words of source and target,
            from 0. Those that are only possible do not count.
        texts, schemes: source and target in subwords, and how these are marked.
        dataset: path without suffix.

    Raises:
        DataError: a line is wrong, there are too many or too few, or the links of many pairs count
            from 1.
    """
    count_lines(*texts, path)
    write_dataset(dataset, np.int32, _spread(path, texts, schemes))


def _spread(
    path: Path, texts: Sequence[Path], schemes: Sequence[str]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    linked, from_zero = 0, False
    lines = zip(read_lines(path), *map(read_lines, texts), strict=True)
    for number, (line, *pair) in enumerate(lines, 1):
        with naming(f"{path}:{number}"):
            links = read_links(line)
        linked += bool(links)
        from_zero = from_zero or any(0 in link[:2] for link in links)
        source, target = (
            _locate_words(text.split(), scheme) for text, scheme in zip(pair, schemes, strict=True)
        )
        numbers: list[int] = []
        for one, other, is_sure in links:
            if one >= len(source) or other >= len(target):
                raise DataError(
                    f"{path}:{number}: {one}-{other}: no link between the {len(source)} words of "
                    f"the source and the {len(target)} of the target; write i-j, counted from 0"
                )
            if is_sure:
                for subwords in product(source[one], target[other]):
                    numbers += subwords
        yield np.array(numbers), np.array([len(numbers)])
    if linked and not from_zero:
        message = (
            f"{path}: {linked} sentence pairs have links, none with a 0, as if they counted from "
            "1; count words from 0"
        )
        if linked >= _MANY:
            raise DataError(message)
        print(f"warning: {message}", file=sys.stderr)


def _locate_words(pieces: Sequence[str], scheme: str) -> list[range]:
    lengths = count_subwords(pieces, scheme)
    return [range(end - size, end) for size, end in zip(lengths, accumulate(lengths), strict=True)]
