"""Check the heads and labels of a text, and write them as fairseq datasets."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from unicodedata import normalize

import numpy as np
from fairseq.data import Dictionary
from tqdm import tqdm

from ..base.errors import BadParse, DataError
from ..base.text import count_lines, read_blocks
from ..base.worker_pool import map_in_order
from .mmap_blocks import check_dataset, count_sentences, read_sizes, write_dataset
from .parses import are_trees, check_parsed, check_tree, parse_heads, parse_spans
from .subwords import CONTINUATION, NO_HEAD
from .words import MARK, find_word_starts, is_raw, join_subwords, split_units, without_mark

#: Kinds of annotation that each word may have, as in file names: dependency heads and labels.
KINDS = HEADS, LABELS = "heads", "labels"

T = TypeVar("T")
Block: TypeAlias = tuple[int, tuple[list[str], ...]]
"""The number of a block's first line, from 1, and its lines of each file (`read_blocks`)."""


@dataclass
class TextCounts:
    """Counts of sentences, words, subwords and parses in a file of heads or labels."""

    sentences: int = 0
    words: int = 0
    subwords: int = 0
    parsed: int = 0
    without_parse: int = 0
    unknown: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def add(self, other: "TextCounts") -> None:
        """Add the counts of another part of the file."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def __str__(self) -> str:
        line = (
            f"{self.sentences} sentences, {self.words} words, {self.subwords} subwords, "
            f"{self.without_parse} without parse, {self.dropped.total()} parses dropped"
        )
        why = ", ".join(f"{count} {reason}" for reason, count in self.dropped.most_common())
        line += f" ({why})" if why else ""
        return f"{line}, {self.unknown} unknown labels" if self.unknown else line


@dataclass(frozen=True)
class AnnotatedText:
    """A text in subwords, with a file of the dependency heads or labels of its words.

    Args:
        kind: what each word has, ``heads`` or ``labels``.
        scheme: how the text's subwords are written; see `find_word_starts`.
        words: the text before it was split into subwords, to compare with; or None.
        spans: the character spans of the words in the sentences of ``words``; None: the words are
            found by the scheme. Only for subwords of raw sentences.
        heads: for labels of raw sentences, the heads of the same words; or None.
        on_bad_parse: ``stop`` if heads or labels do not fit their sentence, or ``drop`` them and
            keep the sentence without.
        min_parsed: the smallest share of sentences whose heads or labels must fit them.
    """

    text: Path
    kind: str
    values: Path
    scheme: str
    words: Path | None = None
    on_bad_parse: str = "stop"
    min_parsed: float = 0.0
    spans: Path | None = None
    heads: Path | None = None

    def process(
        self, work: Callable[[Block], tuple[T, TextCounts]], counts: TextCounts, workers: int
    ) -> Iterator[T]:
        """Apply ``work`` to each block of sentences; yield the results in order, update ``counts``.

        Args:
            work: the function for a block, which may run in another process.
            counts: the counts of all blocks that were yielded.
            workers: the number of processes.

        Raises:
            DataError: the files have different numbers of lines, or too few sentences a parse.
        """
        for result, counted in map_in_order(work, self._read_blocks(), workers, together=1):
            counts.add(counted)
            yield result
        if not counts.subwords:
            raise DataError(f"{self.text}: every line is empty")
        sentences = counts.parsed + counts.without_parse + counts.dropped.total()
        check_parsed(self.values, counts.parsed, sentences, self.min_parsed)

    def _read_blocks(self) -> Iterator[Block]:
        paths = [self.text, *self.list_files()]
        number = 1
        total = count_lines(*paths)
        with tqdm(desc=self.values.name, total=total, unit=" sentences", disable=None) as bar:
            for lines in read_blocks(*paths):
                yield number, lines
                number += len(lines[0])
                bar.update(len(lines[0]))

    @property
    def _others(self) -> tuple[Path | None, ...]:
        return self.words, self.spans, self.heads

    def list_files(self) -> list[Path]:
        """List the files with a line for each sentence, such as heads, except the text itself."""
        return [self.values, *(path for path in self._others if path)]

    def check(self, block: Block) -> tuple[list[list[Any]], list[list[bool]], TextCounts]:
        """Return the heads or labels of a block's sentences, and which subwords begin a word.

        Returns:
            the heads or labels of each sentence, none if it has no parse or the parse was dropped;
            whether each subword of each sentence begins a word; and the counts of the block.

        Raises:
            DataError: the first fault, with file and line.
        """
        begin, (texts, lines, *read) = block
        others = [read.pop(0) if path else [""] * len(texts) for path in self._others]
        plains = others[0]
        subwords = [text.split() for text in texts]
        starts = [find_word_starts(pieces, self.scheme) for pieces in subwords]
        rows = self._read_sound(lines, begin)
        counts = TextCounts(len(texts), subwords=sum(map(len, subwords)))
        values = []
        for index, size in enumerate(map(sum, starts)):
            number = begin + index
            row = self._read_values(lines[index], number) if rows is None else rows[index]
            counts.words += size
            try:
                if row and is_raw(self.scheme):
                    other = [each[index] for each in others]
                    row, starts[index] = self._map_words(row, subwords[index], other, number)
                    counts.words += len(row) - size
                    counts.parsed += 1
                elif row:
                    self._check_size(row, size, plains[index] or texts[index])
                    if rows is None:
                        check_tree(row)
                    if self.words and not are_words(plains[index], subwords[index], self.scheme):
                        self._check_words(subwords[index], plains[index])
                    counts.parsed += 1
                elif size:
                    counts.without_parse += 1
            except BadParse as fault:
                if self.on_bad_parse == "stop":
                    raise DataError(
                        f"{self.values}:{number}: {fault}; correct it, leave the line empty for "
                        "no parse, or use --on-bad-parse drop"
                    ) from None
                counts.dropped[fault.reason] += 1
                row = []
            values.append(row)
        return values, starts, counts

    def _map_words(
        self, values: list[Any], subwords: list[str], other: Sequence[str], number: int
    ) -> tuple[list[Any], list[bool]]:
        """Return the values of the units of a raw sentence, and which subwords begin a unit."""
        sentence, spans, heads = other
        words = parse_spans(spans, self.spans, number) if self.spans else None
        units = split_units(subwords, self.scheme, words, sentence)
        above = values if self.kind == HEADS else None
        if self.heads:
            above = parse_heads(heads, self.heads, number)
        for name, found in ((self.kind, values), (HEADS, above or values)):
            if len(found) != len(units.of_words):
                where = self.spans or f"{self.text} ({self.scheme})"
                raise BadParse(
                    f"wrong number of {name}",
                    f"{len(found)} {name}, but {len(units.of_words)} words in {where}",
                )
        if not above:  # each unit has the label of its first word
            above = [0] * len(values)
        else:
            check_tree(above)
        if self.kind == HEADS:
            return units.map_heads(values), units.starts
        return units.map_labels(values, above), units.starts

    def _read_values(self, line: str, number: int) -> list[Any]:
        return parse_heads(line, self.values, number) if self.kind == HEADS else line.split()

    def _read_sound(self, lines: Sequence[str], begin: int) -> list[list[Any]] | None:
        """Return the heads or labels of a block; None if some heads are no tree.

        Each line is then checked alone. A look at all at once takes a tenth of the time.
        """
        if self.kind == LABELS:
            return [line.split() for line in lines]
        try:
            rows = [
                parse_heads(line, self.values, number) for number, line in enumerate(lines, begin)
            ]
        except DataError:
            return None
        return rows if are_trees(rows) else None

    def _check_size(self, values: list[Any], size: int, text: str) -> None:
        if len(values) != size:
            spaces = sorted({f"U+{ord(c):04X}" for c in text if c.isspace() and c != " "})
            hint = (
                f"; parsers split words at {', '.join(spaces)}: replace these characters with "
                "spaces"
            )
            raise BadParse(
                f"wrong number of {self.kind}",
                f"{len(values)} {self.kind}, but {size} words in {self.text} ({self.scheme})"
                + (hint if spaces else ""),
            )

    def _check_words(self, subwords: list[str], plain: str) -> None:
        joined = join_subwords(subwords, self.scheme)
        ours, theirs = (_comparable(line) for line in (" ".join(joined), plain))
        folds = self.scheme == "sentencepiece"  # which can do that itself, ``nmt_nfkc_cf``
        for number, (our, their) in enumerate(zip(ours, theirs, strict=False), 1):
            if our != their and not (folds and our == normalize("NFKC", their.casefold())):
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
    """Return the words of a line in the form used for comparison.

    fairseq loses white space inside a word (U+3000, say), or a word that is nothing else,
    sentencepiece normalises by default, and syncattn-bpe replaces U+2581: words that differ in
    this only are the same.
    """
    kept = ("".join(normalize("NFKC", word).split()) for word in without_mark(words).split(" "))
    return [*filter(None, kept)]


def are_words(plain: str, subwords: list[str], scheme: str) -> bool:
    """Return whether subwords join to a line's words; False, too, if a quick test cannot tell.

    This is much faster than to join the subwords (`join_subwords`); where it is False, the words
    may still be the same.
    """
    text = " ".join(subwords)
    if scheme == "subword_nmt":
        text = f"{text} ".replace("@@ ", "")
    elif scheme == "sentencepiece":
        if "<0x" in text:  # bytes of a character, perhaps
            return False
        text = text.replace(" ", "").replace(MARK, " ")
    return text.split() == plain.split()


def count_values(source: AnnotatedText, workers: int = 1) -> Counter[Any]:
    """Count how often each head or label occurs in a text, in ``workers`` processes.

    `DataError`: as for `AnnotatedText.process`.
    """
    counted: Counter[Any] = Counter()
    for block in source.process(partial(_count, source), TextCounts(), workers):
        counted.update(block)
    return counted


def _count(source: AnnotatedText, block: Block) -> tuple[Counter[Any], TextCounts]:
    values, _, counts = source.check(block)
    return Counter(chain.from_iterable(values)), counts


def binarise(
    source: AnnotatedText,
    destination: Path,
    dictionary: Dictionary | None = None,
    workers: int = 1,
) -> TextCounts:
    """Write the heads or labels of a text's subwords as a memory-mapped dataset of fairseq.

    These numbers, one for each subword, are the marks of :mod:`.subwords`. The dataset appears
    whole or not at all.

    Args:
        source: the text and its heads or labels.
        destination: the dataset's path without suffix.
        dictionary: the dictionary of labels, whose indices are the marks; None for heads.
        workers: the number of processes.

    Raises:
        DataError: see :meth:`AnnotatedText.process`.
    """
    try:
        return _write(source, destination, np.int16, dictionary, workers)
    except OverflowError:  # a sentence of more than 32,767 words, or as many labels
        return _write(source, destination, np.int32, dictionary, workers)


def _write(
    source: AnnotatedText,
    destination: Path,
    dtype: type[np.signedinteger],
    dictionary: Dictionary | None,
    workers: int,
) -> TextCounts:
    counts = TextCounts()
    mark = partial(_mark, source, dtype, dictionary)
    write_dataset(destination, dtype, source.process(mark, counts, workers))
    return counts


def _mark(
    source: AnnotatedText,
    dtype: type[np.signedinteger],
    dictionary: Dictionary | None,
    block: Block,
) -> tuple[tuple[np.ndarray, np.ndarray], TextCounts]:
    """Return the marks of a block's subwords, and the number of subwords of each sentence."""
    values, starts, counts = source.check(block)
    numbers: list[int] = []
    for row, begins in zip(values, starts, strict=True):
        if dictionary:
            indices = [dictionary.indices.get(label, dictionary.unk()) for label in row]
            counts.unknown += indices.count(dictionary.unk())
            row = indices
        numbers += row or [NO_HEAD] * sum(begins)
    begin_words = np.fromiter(chain.from_iterable(starts), bool, counts.subwords)
    if max(numbers, default=0) > np.iinfo(dtype).max:
        raise OverflowError
    marks = np.full(counts.subwords, CONTINUATION, dtype)
    marks[begin_words] = numbers
    return (marks, np.array([*map(len, starts)])), counts


def check_lengths(source: AnnotatedText, marks: Path, text: Path) -> None:
    """Raise `DataError` unless a binarised text has one mark (head or label) for each subword.

    ``marks`` and ``text``, which fairseq binarised, are paths without suffix.
    """
    check_dataset(str(text))
    ours, theirs = (count_sentences(str(path)) for path in (marks, text))
    if ours != theirs:
        raise DataError(
            f"{text}: the binarised text has {theirs} sentences, and {source.text} has a "
            "different number; binarise the text again"
        )
    number = 1
    for sizes, lengths in zip(read_sizes(str(marks)), read_sizes(str(text)), strict=True):
        wrong = np.flatnonzero(sizes != lengths - 1)  # the end of sentence
        if len(wrong):
            raise DataError(
                f"{source.text}:{number + wrong[0]}: the line has {sizes[wrong[0]]} subwords, "
                f"but {lengths[wrong[0]] - 1} in {text}; binarise the text and its {source.kind} "
                "in the same run"
            )
        number += len(sizes)
