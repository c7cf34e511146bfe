"""Parses beside a text, checked against it and written as a dataset in fairseq's own format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from unicodedata import normalize

import numpy as np
import torch
from fairseq.data.indexed_dataset import (
    MMapIndexedDataset,
    MMapIndexedDatasetBuilder,
    data_file_path,
    index_file_path,
)
from tqdm import tqdm

from .errors import BadParse, DataError
from .files import read_lines, replacing, same_line_count
from .parses import check_tree, read_heads
from .subwords import CONTINUATION, NO_HEAD, join_subwords, word_starts

POLICIES = ("stop", "drop")


@dataclass
class Counts:
    """What one file held."""

    sentences: int = 0
    words: int = 0
    subwords: int = 0
    without_parse: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        line = (
            f"{self.sentences} sentences, {self.words} words, {self.subwords} subwords, "
            f"{self.without_parse} without parse, {self.dropped.total()} parses dropped"
        )
        why = ", ".join(f"{count} {reason}" for reason, count in self.dropped.most_common())
        return f"{line} ({why})" if why else line


@dataclass(frozen=True)
class ParsedText:
    """A text in subwords and the heads of its words.

    Args:
        text: subwords, one sentence per line.
        heads: heads of the words, one sentence per line; see `read_heads`.
        scheme: how the text's subwords are written; see `word_starts`.
        words: the text before it was cut into subwords, to be compared with it; or None.
        on_bad_parse: ``stop``, or ``drop`` the parse and keep the sentence without labels.
    """

    text: Path
    heads: Path
    scheme: str
    words: Path | None = None
    on_bad_parse: str = "stop"

    def check(self) -> None:
        """Read everything once and write nothing.

        Raises:
            DataError: naming file and line of the first fault.
        """
        same_line_count(self.text, self.heads, *([self.words] if self.words else []))
        counts = Counts()
        for _ in self.marks(counts):
            pass
        if not counts.subwords:
            raise DataError(f"{self.text}: every line is empty")

    def marks(self, counts: Counts) -> Iterator[list[int]]:
        """Yield one mark per subword for each sentence: a head, ``NO_HEAD`` or ``CONTINUATION``.

        Args:
            counts: is brought up to date with every sentence.

        Raises:
            DataError: naming file and line of the first fault.
        """
        words = read_lines(self.words) if self.words else repeat(None)
        sentences = zip(read_lines(self.text), read_heads(self.heads), words, strict=False)
        progress = tqdm(sentences, desc=self.heads.name, unit=" sentences", disable=None)
        for number, (text, heads, plain) in enumerate(progress, 1):
            subwords = text.split()
            starts = word_starts(subwords, self.scheme)
            size = sum(starts)
            counts.sentences += 1
            counts.words += size
            counts.subwords += len(subwords)
            if heads is None:
                counts.without_parse += size > 0
            else:
                try:
                    self._check_sentence(heads, size, subwords, plain)
                except BadParse as fault:
                    if self.on_bad_parse == "stop":
                        raise DataError(
                            f"{self.heads}:{number}: {fault}; correct it, leave the line empty "
                            "for no parse, or use --on-bad-parse drop"
                        ) from None
                    counts.dropped[fault.reason] += 1
                    heads = None
            word_marks = iter(heads or repeat(NO_HEAD))
            yield [next(word_marks) if start else CONTINUATION for start in starts]

    def _check_sentence(
        self, heads: list[int], size: int, subwords: list[str], plain: str | None
    ) -> None:
        if len(heads) != size:
            raise BadParse(
                "wrong number of heads",
                f"{len(heads)} heads, but {size} words in {self.text} ({self.scheme})",
            )
        check_tree(heads)
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


def binarise(source: ParsedText, text_dataset: Path, destination: Path) -> Counts:
    """Write the marks of a parsed text as a memory-mapped dataset, one entry per subword.

    Args:
        source: the parsed text.
        text_dataset: path, without suffix, of the text as fairseq has binarised it.
        destination: path, without suffix, of the dataset to write; it appears whole or not at all.

    Raises:
        DataError: for a fault in the input, or a text dataset that was not made from this text.
    """
    dataset = MMapIndexedDataset(str(text_dataset))  # which unmaps its sizes when it goes
    sizes = dataset.sizes
    if len(sizes) != same_line_count(source.text, source.heads):
        raise DataError(f"{text_dataset}: {len(sizes)} sentences were binarised from {source.text}")
    # A head is at most the number of words, that is, at most the number of subwords.
    dtype = np.int16 if sizes.max() <= np.iinfo(np.int16).max else np.int32

    counts = Counts()
    index_path, data_path = index_file_path(str(destination)), data_file_path(str(destination))
    # The index comes last: a dataset without it does not exist for fairseq.
    with replacing(Path(index_path)) as index, replacing(Path(data_path)) as data:
        builder = MMapIndexedDatasetBuilder(str(data), dtype=dtype)
        for marks, size in zip(source.marks(counts), sizes, strict=True):
            if len(marks) + 1 != size:  # + 1: end of sentence
                raise DataError(
                    f"{source.text}:{counts.sentences}: {len(marks)} subwords here, but {size - 1} "
                    f"in {text_dataset}; binarise the text and its heads in the same run"
                )
            builder.add_item(torch.from_numpy(np.array(marks, dtype=dtype)))
        builder.finalize(str(index))
    return counts
