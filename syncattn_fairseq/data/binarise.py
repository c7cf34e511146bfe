"""Check the heads and labels of a text against it, and write them as fairseq datasets."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, index_file_path
from tqdm import tqdm

from ..base.errors import BadParse, DataError
from ..base.text import count_lines, read_lines
from .checksums import store_checksums
from .mmap_blocks import check_dataset, write_dataset
from .parse_blocks import are_trees, parse_heads_of_lines, parse_labels_of_lines
from .parses import check_parsed, check_tree, parse_heads
from .subwords import CONTINUATION, NO_HEAD
from .text_blocks import TextBlock
from .words import join_subwords, without_mark

Lines = tuple[str, str, str]
"""One sentence, as three lines: its subwords, its heads or labels, and its words."""


@dataclass(frozen=True)
class Annotation:
    """A kind of information about every word of a text.

    Args:
        name: of the values, as in file names.
        read_line: returns the values on a line, one per word; also takes the path and the line
            number, for its errors.
        read_block: returns the values on many lines, one after the other, and how many each has.
        check: raises `BadParse` if the values of a sentence do not fit together.
        are_sound: returns, for many sentences at once, where `check` finds nothing wrong; takes the
            result of ``read_block``.
    """

    name: str
    read_line: Callable[[str, Path, int], list[Any]]
    read_block: Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]]
    check: Callable[[list[Any]], None]
    are_sound: Callable[[np.ndarray, np.ndarray], np.ndarray]


HEADS = Annotation("heads", parse_heads, parse_heads_of_lines, check_tree, are_trees)
LABELS = Annotation(
    "labels",
    lambda line, path, number: line.split(),
    parse_labels_of_lines,
    lambda labels: None,
    lambda labels, sizes: np.full(len(sizes), True),
)


@dataclass
class TextCounts:
    """The contents of one file, counted."""

    sentences: int = 0
    words: int = 0
    subwords: int = 0
    parsed: int = 0
    without_parse: int = 0
    unknown: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        line = (
            f"{self.sentences} sentences, {self.words} words, {self.subwords} subwords, "
            f"{self.without_parse} without parse, {self.dropped.total()} parses dropped"
        )
        why = ", ".join(f"{count} {reason}" for reason, count in self.dropped.most_common())
        line += f" ({why})" if why else ""
        return f"{line}, {self.unknown} unknown labels" if self.unknown else line


@dataclass(frozen=True)
class Block:
    """Consecutive sentences of an annotated text.

    Args:
        text: their subwords.
        has_parse: (sentences,) whether a sentence has heads or labels.
        values: (words of sentences that have a parse,) their heads or labels.
    """

    text: TextBlock
    has_parse: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class AnnotatedText:
    """A text in subwords, and the heads or labels of its words.

    Args:
        text: subwords, one sentence per line.
        annotation: heads or labels.
        values: heads or labels of the words, one sentence per line.
        scheme: how the text's subwords are written; see `find_word_starts`.
        words: the text before it was split into subwords, to compare with; or None.
        on_bad_parse: ``stop`` if heads or labels do not fit their sentence, or ``drop`` them and
            keep the sentence without.
        min_parsed: the smallest share of sentences whose heads or labels must fit them.
    """

    text: Path
    annotation: Annotation
    values: Path
    scheme: str
    words: Path | None = None
    on_bad_parse: str = "stop"
    min_parsed: float = 0.0

    def check(self, tally: Counter[Any] | None = None) -> None:
        """Read everything once and write nothing.

        Args:
            tally: counts each value.

        Raises:
            DataError: for the first fault, with file and line.
        """
        count_lines(self.text, self.values, *([self.words] if self.words else []))
        counts = TextCounts()
        for block in self._blocks(counts):
            if tally is not None:
                tally.update(block.values)
        if not counts.subwords:
            raise DataError(f"{self.text}: every line is empty")
        sentences = counts.parsed + counts.without_parse + counts.dropped.total()
        check_parsed(self.values, counts.parsed, sentences, self.min_parsed)

    def marks(
        self, counts: TextCounts, dictionary: Dictionary | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield one mark per subword, and the number of subwords of each sentence, block by block.

        A word's first subword has its head or the index of its label, or ``NO_HEAD``; the others
        have ``CONTINUATION``.

        Args:
            counts: updated with every block.
            dictionary: of the labels; heads have none.

        Raises:
            DataError: for the first fault, with file and line.
        """
        for block in self._blocks(counts):
            values = block.values
            if dictionary:
                unknown = dictionary.unk()
                values = np.array([dictionary.indices.get(label, unknown) for label in values])
                counts.unknown += int((values == unknown).sum())
            text = block.text
            words = np.full(text.words.sum(), NO_HEAD)
            words[np.repeat(block.has_parse, text.words)] = values
            marks = np.full(text.subwords.sum(), CONTINUATION)
            marks[text.starts] = words
            yield marks, text.subwords

    def _blocks(self, counts: TextCounts) -> Iterator[Block]:
        """Yield the sentences, with their heads or labels if these fit."""
        words = read_lines(self.words) if self.words else repeat("")
        lines = zip(read_lines(self.text), read_lines(self.values), words, strict=False)
        with tqdm(desc=self.values.name, unit=" sentences", disable=None) as progress:
            for block in _cut_blocks(lines):
                yield self._check_block(block, counts)
                progress.update(len(block))

    def _check_block(self, lines: list[Lines], counts: TextCounts) -> Block:
        texts, annotations, words = zip(*lines, strict=True)
        text = TextBlock(texts, self.scheme)
        values, sizes = self.annotation.read_block(annotations)
        has_parse = sizes > 0
        counts.without_parse += int((~has_parse & (text.words > 0)).sum())
        # Only sentences that may not fit are checked one by one, which takes much longer.
        fits = (sizes == text.words) & self.annotation.are_sound(values, sizes)
        if self.words:
            fits &= _has_words(text, words)
        for index in np.flatnonzero(has_parse & ~fits):
            number = counts.sentences + int(index) + 1
            try:
                self._check_sentence(number, *lines[index])
            except BadParse as fault:
                if self.on_bad_parse == "stop":
                    raise DataError(
                        f"{self.values}:{number}: {fault}; correct it, leave the line empty "
                        "for no parse, or use --on-bad-parse drop"
                    ) from None
                counts.dropped[fault.reason] += 1
                has_parse[index] = False
        counts.parsed += int((has_parse & (text.words > 0)).sum())
        counts.sentences += len(lines)
        counts.words += int(text.words.sum())
        counts.subwords += int(text.subwords.sum())
        return Block(text, has_parse, values[np.repeat(has_parse, sizes)])

    def _check_sentence(self, number: int, text: str, line: str, plain: str) -> None:
        name = self.annotation.name
        values = self.annotation.read_line(line, self.values, number)
        words = join_subwords(text.split(), self.scheme)
        if len(values) != len(words):
            spaces = sorted({f"U+{ord(c):04X}" for c in plain or text if c.isspace() and c != " "})
            hint = f"; parsers split words at {', '.join(spaces)}, write spaces there"
            raise BadParse(
                f"wrong number of {name}",
                f"{len(values)} {name}, but {len(words)} words in {self.text} ({self.scheme})"
                + (hint if spaces else ""),
            )
        self.annotation.check(values)
        if self.words:
            self._check_words(words, plain)

    def _check_words(self, joined: list[str], plain: str) -> None:
        if joined == plain.split():
            return
        ours, theirs = (_comparable(line) for line in (" ".join(joined), plain))
        for number, (our, their) in enumerate(zip(ours, theirs, strict=False), 1):
            if our != their:
                raise BadParse(
                    "words differ",
                    f"word {number} is {our!r} in {self.text} but {their!r} in {self.words}",
                )
        if len(ours) != len(theirs):
            raise BadParse(
                "words differ",
                f"{len(ours)} words in {self.text}, {len(theirs)} in {self.words}",
            )


def _comparable(words: str) -> list[str]:
    """Return words as they are compared.

    fairseq loses white space inside a word (U+3000, say), or a word that is nothing else,
    sentencepiece normalises by default, and syncattn-bpe replaces U+2581: words that differ in
    this only are the same.
    """
    kept = ("".join(normalize("NFKC", word).split()) for word in without_mark(words).split(" "))
    return [*filter(None, kept)]


def _cut_blocks(lines: Iterable[Lines], characters: int = 2**17) -> Iterator[list[Lines]]:
    """Split a corpus into blocks of about this many characters of text."""
    block: list[Lines] = []
    left = characters
    for line in lines:
        block.append(line)
        left -= len(line[0]) + 1
        if left <= 0:
            yield block
            block, left = [], characters
    if block:
        yield block


def _has_words(text: TextBlock, lines: Sequence[str]) -> np.ndarray:
    """Return for each line whether it certainly has the words of the text."""
    plain = TextBlock(lines, "none")
    pairs = zip(text.join_words(), plain.join_words(), strict=True)
    same = [ours == theirs and "▁" not in ours for ours, theirs in pairs]
    return (text.words == plain.words) & same


def binarise(
    source: AnnotatedText,
    text_dataset: Path,
    destination: Path,
    dictionary: Dictionary | None = None,
) -> TextCounts:
    """Write the marks of a text as a memory-mapped dataset, one entry per subword.

    Args:
        source: the text with its heads or labels.
        text_dataset: path, without suffix, of the text that fairseq binarised.
        destination: path, without suffix, of the dataset to write; it appears whole or not at all,
            then its checksums (:mod:`.checksums`).
        dictionary: of the labels; heads have none.

    Raises:
        DataError: the input has a fault, or the text dataset was not made from this text.
    """
    counts = TextCounts()
    check_dataset(str(text_dataset))
    index = MMapIndexedDataset.Index(index_file_path(str(text_dataset)))
    if len(index) != count_lines(source.text, source.values):
        raise DataError(
            f"{text_dataset}: {len(index)} sentences, not as many as {source.text} has now"
        )

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        begin = 0
        for marks, subwords in source.marks(counts, dictionary):
            expected = index.sizes[begin : begin + len(subwords)] - 1  # the end of sentence
            wrong = np.flatnonzero(subwords != expected)
            if len(wrong):
                first = wrong[0]
                raise DataError(
                    f"{source.text}:{begin + first + 1}: {subwords[first]} subwords here, but "
                    f"{expected[first]} in {text_dataset}; binarise the text and its "
                    f"{source.annotation.name} in the same run"
                )
            yield marks, subwords
            begin += len(subwords)

    # A head is at most the number of words, that is, at most the number of subwords.
    largest = len(dictionary) if dictionary else index.sizes.max(initial=0)
    dtype = np.int16 if largest <= np.iinfo(np.int16).max else np.int32
    write_dataset(destination, dtype, blocks())
    store_checksums(str(text_dataset), str(destination))
    return counts
