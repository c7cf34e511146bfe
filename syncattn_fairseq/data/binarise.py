"""Heads and labels beside a text, checked against it and written as fairseq's datasets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import (
    MMapIndexedDataset,
    MMapIndexedDatasetBuilder,
    data_file_path,
    index_file_path,
)
from tqdm import tqdm

from .errors import BadParse, DataError
from .files import read_lines, replacing, same_line_count
from .parses import check_tree, read_heads, read_labels
from .subwords import NO_HEAD, join_subwords, subword_marks, word_starts

POLICIES = ("stop", "drop")


@dataclass(frozen=True)
class Annotation:
    """What a file says of every word of a text.

    Args:
        name: of its values, as in the names of files.
        read: yields the values of each sentence, one per word; None where there is no parse.
        check: raises `BadParse` for values that do not go together.
    """

    name: str
    read: Callable[[Path], Iterator[list[Any] | None]]
    check: Callable[[list[Any]], None] | None = None


HEADS = Annotation("heads", read_heads, check_tree)
LABELS = Annotation("labels", read_labels)


@dataclass
class Counts:
    """What one file held."""

    sentences: int = 0
    words: int = 0
    subwords: int = 0
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
        text: subwords, one sentence per line.
        annotation: what is known of the words.
        values: heads or labels of the words, one sentence per line.
        scheme: how the text's subwords are written; see `word_starts`.
        words: the text before it was cut into subwords, to be compared with it; or None.
        on_bad_parse: ``stop``, or ``drop`` the heads or labels of a sentence that they do not fit,
            and keep the sentence without.
    """

    text: Path
    annotation: Annotation
    values: Path
    scheme: str
    words: Path | None = None
    on_bad_parse: str = "stop"

    def check(self, tally: Counter[Any] | None = None) -> None:
        """Read everything once and write nothing.

        Args:
            tally: is brought up to date with how often there is each value.

        Raises:
            DataError: naming file and line of the first fault.
        """
        same_line_count(self.text, self.values, *([self.words] if self.words else []))
        counts = Counts()
        for _, values in self._sentences(counts):
            if tally is not None and values:
                tally.update(values)
        if not counts.subwords:
            raise DataError(f"{self.text}: every line is empty")

    def marks(self, counts: Counts, dictionary: Dictionary | None = None) -> Iterator[list[int]]:
        """Yield one mark per subword for each sentence.

        A word's first subword has its head or the index of its label, or ``NO_HEAD``; its others
        ``CONTINUATION``.

        Args:
            counts: is brought up to date with every sentence.
            dictionary: of the labels; heads have none.

        Raises:
            DataError: naming file and line of the first fault.
        """
        for starts, values in self._sentences(counts):
            if values and dictionary:
                unknown = dictionary.unk()
                values = [dictionary.indices.get(label, unknown) for label in values]
                counts.unknown += values.count(unknown)
            yield subword_marks(values or repeat(NO_HEAD), starts)

    def _sentences(self, counts: Counts) -> Iterator[tuple[list[bool], list[Any] | None]]:
        """Yield where words start, and what is known of the words if it fits them."""
        words = read_lines(self.words) if self.words else repeat(None)
        sentences = zip(
            read_lines(self.text), self.annotation.read(self.values), words, strict=False
        )
        progress = tqdm(sentences, desc=self.values.name, unit=" sentences", disable=None)
        for number, (text, values, plain) in enumerate(progress, 1):
            subwords = text.split()
            starts = word_starts(subwords, self.scheme)
            size = sum(starts)
            counts.sentences += 1
            counts.words += size
            counts.subwords += len(subwords)
            if values is None:
                counts.without_parse += size > 0
            else:
                try:
                    self._check_sentence(values, size, subwords, plain)
                except BadParse as fault:
                    if self.on_bad_parse == "stop":
                        raise DataError(
                            f"{self.values}:{number}: {fault}; correct it, leave the line empty "
                            "for no parse, or use --on-bad-parse drop"
                        ) from None
                    counts.dropped[fault.reason] += 1
                    values = None
            yield starts, values

    def _check_sentence(
        self, values: list[Any], size: int, subwords: list[str], plain: str | None
    ) -> None:
        if len(values) != size:
            name = self.annotation.name
            raise BadParse(
                f"wrong number of {name}",
                f"{len(values)} {name}, but {size} words in {self.text} ({self.scheme})",
            )
        if self.annotation.check:
            self.annotation.check(values)
        if plain is not None:
            self._check_words(join_subwords(subwords, self.scheme), plain)

    def _check_words(self, joined: list[str], plain: str) -> None:
        if joined == plain.split():
            return
        # fairseq loses white space inside a word (U+3000, say), and sentencepiece's own default is
        # to normalise: neither means that the parse is of other words.
        joined = [normalize("NFKC", word) for word in joined]
        words = ["".join(normalize("NFKC", word).split()) for word in plain.split(" ") if word]
        for number, (ours, theirs) in enumerate(zip(joined, words, strict=False), 1):
            if ours != theirs:
                raise BadParse(
                    "words differ",
                    f"word {number} is {ours!r} in {self.text} but {theirs!r} in {self.words}",
                )
        if len(joined) != len(words):
            raise BadParse(
                "words differ", f"{len(joined)} words in {self.text}, {len(words)} in {self.words}"
            )


def binarise(
    source: AnnotatedText,
    text_dataset: Path,
    destination: Path,
    dictionary: Dictionary | None = None,
) -> Counts:
    """Write the marks of a text as a memory-mapped dataset, one entry per subword.

    Args:
        source: the text with its heads or labels.
        text_dataset: path, without suffix, of the text as fairseq has binarised it.
        destination: path, without suffix, of the dataset to write; it appears whole or not at all.
        dictionary: of the labels; heads have none.

    Raises:
        DataError: for a fault in the input, or a text dataset that was not made from this text.
    """
    dataset = MMapIndexedDataset(str(text_dataset))  # which unmaps its sizes when it goes
    sizes = dataset.sizes
    if len(sizes) != same_line_count(source.text, source.values):
        raise DataError(f"{text_dataset}: {len(sizes)} sentences were binarised from {source.text}")
    # A head is at most the number of words, that is, at most the number of subwords.
    largest = len(dictionary) if dictionary else sizes.max()
    dtype = np.int16 if largest <= np.iinfo(np.int16).max else np.int32

    counts = Counts()
    index_path, data_path = index_file_path(str(destination)), data_file_path(str(destination))
    # The index comes last: a dataset without it does not exist for fairseq.
    with replacing(Path(index_path)) as index, replacing(Path(data_path)) as data:
        builder = MMapIndexedDatasetBuilder(str(data), dtype=dtype)
        for marks, size in zip(source.marks(counts, dictionary), sizes, strict=True):
            if len(marks) + 1 != size:  # + 1: end of sentence
                raise DataError(
                    f"{source.text}:{counts.sentences}: {len(marks)} subwords here, but {size - 1} "
                    f"in {text_dataset}; binarise the text and its {source.annotation.name} in the "
                    "same run"
                )
            builder.add_item(torch.from_numpy(np.array(marks, dtype=dtype)))
        builder.finalize(str(index))
    return counts
