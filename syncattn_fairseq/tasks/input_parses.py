"""Get parses of the input of ``fairseq-interactive``, from files or from a parser."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..base.errors import BadParse, DataError
from ..data.parses import check_tree, read_heads, read_labels
from ..data.subwords import NO_HEAD, mark_subwords
from ..data.words import detect_scheme, is_raw, split_units
from ..parsing.parser import Parse
from ..parsing.parsers import open_parser
from ..parsing.subwords import parse_subwords

T = TypeVar("T", list[int], list[str])


class InputParses:
    """Reader of each input line's parse: from files of heads and labels, or from a parser.

    The text's dictionary shows how subwords are marked if no scheme is given. ``labels`` is the
    dictionary of the dependency labels, or None. The parser is a spec for
    `..parsing.parsers.open_parser`, whose errors are raised.
    """

    def __init__(
        self,
        dictionary: Any,
        labels: Any | None,
        heads_file: str | None = None,
        labels_file: str | None = None,
        parser: str | None = None,
        scheme: str | None = None,
    ) -> None:
        self.scheme = scheme or detect_scheme(dictionary.symbols)
        self.labels = labels
        self.heads_file, self.labels_file = heads_file, labels_file
        self.heads_lines = read_heads(heads_file) if heads_file else None
        self.labels_lines = read_labels(labels_file) if labels_file else None
        self.parser = open_parser(parser) if parser else None
        self.line = 0

    def __call__(
        self, texts: Sequence[str], parses: Sequence[Parse | None] | None = None
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return the heads and the labels of the next input lines, as an integer for each subword.

        These marks are those of :mod:`.subwords`. Without a dictionary of labels there are none of
        labels. The lines are in subwords; without their ``parses``, the parser is asked, if there
        is one.

        Raises:
            DataError: a parse does not fit its line, or a file ends before the input does.
        """
        subwords = [text.split() for text in texts]
        if parses is None and self.parser:
            parses = parse_subwords(self.parser, subwords, self.scheme)
        parses = parses or [None] * len(texts)
        heads_marks, labels_marks = [], []
        for tokens, parse in zip(subwords, parses, strict=True):
            self.line += 1
            units = split_units(tokens, self.scheme, (parse and parse.spans) or None)
            size, starts = len(units.of_words), units.starts
            heads, labels = (parse.heads, parse.labels) if parse else (None, None)
            heads = self._from_file(self.heads_file, self.heads_lines, size, heads)
            labels = self._from_file(self.labels_file, self.labels_lines, size, labels)
            if heads and self.heads_file:
                try:
                    check_tree(heads)
                except BadParse as fault:
                    raise DataError(f"{self.heads_file}:{self.line}: {fault}") from None
            if heads and is_raw(self.scheme):
                labels = units.map_labels(labels, heads) if labels else None
                heads = units.map_heads(heads)
            heads_marks.append(_mark_words(heads, starts))
            if self.labels is not None:
                indices = [self.labels.index(label) for label in labels] if labels else None
                labels_marks.append(_mark_words(indices, starts))
        return heads_marks, labels_marks

    def _from_file(
        self,
        path: str | None,
        lines: Iterator[T | None] | None,
        size: int,
        default: T | None,
    ) -> T | None:
        """Return the entry of a file for the current line, or ``default`` if there is no file."""
        if lines is None:
            return default
        try:
            entry = next(lines)
        except StopIteration:
            raise DataError(
                f"{path}: ends after {self.line - 1} lines, but the input has more; the file "
                "needs one line for each line of input, empty if there is no parse"
            ) from None
        if entry is not None and len(entry) != size:
            raise DataError(
                f"{path}:{self.line}: has {len(entry)} entries, but the input has {size} words"
            )
        return entry


def _mark_words(words: Sequence[int] | None, starts: Sequence[bool]) -> Tensor:
    numbers = [NO_HEAD] * sum(starts) if words is None else words
    return torch.tensor(mark_subwords(numbers, starts), dtype=torch.long)
