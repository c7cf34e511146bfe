"""Check the heads and labels of a text against it, and write them as fairseq datasets."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, index_file_path
from tqdm import tqdm

from ..base.errors import BadParse, DataError
from ..base.text import count_lines, read_lines
from .mmap_blocks import check_dataset, write_dataset
from .parses import check_parsed, check_tree, parse_heads, parse_spans
from .subwords import NO_HEAD, mark_subwords
from .words import MARK, find_word_starts, is_raw, join_subwords, split_units, without_mark

#: What there may be of every word, as in file names.
KINDS = HEADS, LABELS = "heads", "labels"
#: Sentences that are written together.
_BLOCK = 1000


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
class AnnotatedText:
    """A text in subwords, and the heads or labels of its words.

    Args:
        kind: of the values, ``heads`` or ``labels``.
        scheme: how the text's subwords are written; see `find_word_starts`.
        words: the text before it was split into subwords, to compare with; or None.
        spans: where the words are in the sentences of ``words``; None: as the scheme finds them.
            Only subwords of raw sentences have these.
        heads: of labels of raw sentences, the heads of their words; or None.
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

    def read(self, counts: TextCounts) -> Iterator[tuple[list[Any], list[bool]]]:
        """Yield the heads or labels of each sentence, and whether each subword begins a word.

        There are none if the sentence has no parse, or if it was dropped. ``counts`` is updated.
        `DataError` says the first fault, with file and line, or that too few have a parse.
        """
        count_lines(self.text, self.values, *self._list_others())
        others = [read_lines(path) if path else repeat("") for path in self._others]
        texts = tqdm(read_lines(self.text), self.values.name, unit=" sentences", disable=None)
        for text, line, *other in zip(texts, read_lines(self.values), *others, strict=False):
            subwords = text.split()
            starts = find_word_starts(subwords, self.scheme)
            size = sum(starts)
            counts.sentences += 1
            counts.words += size
            counts.subwords += len(subwords)
            values: list[Any] = line.split()
            if self.kind == HEADS:
                values = parse_heads(line, self.values, counts.sentences)
            try:
                if values and is_raw(self.scheme):
                    values, starts = self._map_words(values, subwords, other, counts.sentences)
                    counts.words += sum(starts) - size
                    counts.parsed += 1
                elif values:
                    self._check(values, size, text, other[0])
                    counts.parsed += 1
                elif size:
                    counts.without_parse += 1
            except BadParse as fault:
                if self.on_bad_parse == "stop":
                    raise DataError(
                        f"{self.values}:{counts.sentences}: {fault}; correct it, leave the line "
                        "empty for no parse, or use --on-bad-parse drop"
                    ) from None
                counts.dropped[fault.reason] += 1
                values = []
            yield values, starts
        if not counts.subwords:
            raise DataError(f"{self.text}: every line is empty")
        sentences = counts.parsed + counts.without_parse + counts.dropped.total()
        check_parsed(self.values, counts.parsed, sentences, self.min_parsed)

    @property
    def _others(self) -> tuple[Path | None, ...]:
        return self.words, self.spans, self.heads

    def list_files(self) -> list[Path]:
        """Return the files besides the text that have a line for each of its lines."""
        return [self.values, *self._list_others()]

    def _list_others(self) -> list[Path]:
        return [path for path in self._others if path]

    def _map_words(
        self, values: list[Any], subwords: list[str], other: Sequence[str], number: int
    ) -> tuple[list[Any], list[bool]]:
        """Return the values of the units of a raw sentence, and where they begin."""
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

    def _check(self, values: list[Any], size: int, text: str, plain: str) -> None:
        if len(values) != size:
            spaces = sorted({f"U+{ord(c):04X}" for c in plain or text if c.isspace() and c != " "})
            hint = f"; parsers split words at {', '.join(spaces)}, write spaces there"
            raise BadParse(
                f"wrong number of {self.kind}",
                f"{len(values)} {self.kind}, but {size} words in {self.text} ({self.scheme})"
                + (hint if spaces else ""),
            )
        if self.kind == HEADS:
            check_tree(values)
        subwords = text.split()
        if self.words and not are_words(plain, subwords, self.scheme):
            self._check_words(join_subwords(subwords, self.scheme), plain)

    def _check_words(self, joined: list[str], plain: str) -> None:
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


def are_words(plain: str, subwords: list[str], scheme: str) -> bool:
    """Return whether these certainly are the words of subwords; joining them takes much longer."""
    text = " ".join(subwords)
    if scheme == "subword_nmt":
        text = f"{text} ".replace("@@ ", "")
    elif scheme == "sentencepiece":
        if "<0x" in text:  # bytes of a character, perhaps
            return False
        text = text.replace(" ", "").replace(MARK, " ")
    return text.split() == plain.split()


def binarise(
    source: AnnotatedText, destination: Path, dictionary: Dictionary | None = None
) -> TextCounts:
    """Write the marks of a text (:mod:`.subwords`) as a memory-mapped dataset, whole or not at all.

    ``destination`` is its path without suffix; ``dictionary`` is of the labels, whose indices are
    the marks. Heads have none. Errors are those of `AnnotatedText.read`.
    """
    try:
        return _write(source, destination, np.int16, dictionary)
    except OverflowError:  # a sentence of more than 32,767 words, or as many labels
        return _write(source, destination, np.int32, dictionary)


def _write(
    source: AnnotatedText,
    destination: Path,
    dtype: type[np.signedinteger],
    dictionary: Dictionary | None,
) -> TextCounts:
    counts = TextCounts()

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        sentences = source.read(counts)
        while block := [*islice(sentences, _BLOCK)]:
            marks: list[int] = []
            for values, starts in block:
                if dictionary:
                    unknown = dictionary.unk()
                    values = [dictionary.indices.get(label, unknown) for label in values]
                    counts.unknown += values.count(unknown)
                marks += mark_subwords(values or repeat(NO_HEAD), starts)
            if max(marks, default=0) > np.iinfo(dtype).max:
                raise OverflowError
            yield np.array(marks, dtype), np.array([len(starts) for _, starts in block])

    write_dataset(destination, dtype, blocks())
    return counts


def check_lengths(source: AnnotatedText, marks: Path, text: Path) -> None:
    """Raise `DataError` unless a text has a mark for each subword that fairseq found in it.

    ``marks`` and ``text``, which fairseq binarised, are paths without suffix.
    """
    check_dataset(str(text))
    # Sizes are views of their indices' memory maps.
    indices = [MMapIndexedDataset.Index(index_file_path(str(path))) for path in (marks, text)]
    ours, theirs = (index.sizes for index in indices)
    if len(ours) != len(theirs):
        raise DataError(f"{text}: {len(theirs)} sentences, not as many as {source.text} has now")
    wrong = np.flatnonzero(ours != theirs - 1)  # the end of sentence
    if len(wrong):
        raise DataError(
            f"{source.text}:{wrong[0] + 1}: {ours[wrong[0]]} subwords here, but "
            f"{theirs[wrong[0]] - 1} in {text}; binarise the text and its {source.kind} in the "
            "same run"
        )
