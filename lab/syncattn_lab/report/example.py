"""A sentence pair to draw, with its gold annotation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.data.parses import check_tree, read_heads, read_labels, read_spans
from syncattn_fairseq.data.spans import Span, check_spans
from syncattn_fairseq.data.words import Link
from syncattn_fairseq.trees.brackets import read_trees
from syncattn_fairseq.trees.tree import Tree

from ..evaluation.alignment import read_alignments
from ..evaluation.word_alignment import WordAlignment

T = TypeVar("T")


@dataclass(frozen=True)
class Side:
    """The words of a source or target sentence and their annotation, None where it is unknown."""

    words: list[str]
    heads: list[int] | None = None
    """The dependency head of each word, counted from 1; 0 is the root."""
    labels: list[str] | None = None
    tree: Tree | None = None
    sentence: str = ""
    """The sentence before it was split into words; empty if it is the words with spaces."""
    spans: list[Span] | None = None
    """The character span of each word in ``sentence``, or None if that is empty."""

    @classmethod
    def cut(cls, sentence: str, spans: list[Span], **known: Any) -> Side:
        """Make a `Side` from a sentence and the character spans of its words.

        ``known`` are other attributes, such as ``heads``.
        """
        words = [sentence[begin:end] for begin, end in spans]
        return cls(words, **known, sentence=sentence, spans=spans)

    @property
    def text(self) -> str:
        """The sentence as people write it, or else its words separated by spaces."""
        return self.sentence or " ".join(self.words)


@dataclass(frozen=True)
class Links:
    """The gold word alignment of a sentence pair, which may have no links."""

    sure: set[Link]
    possible: set[Link]

    @property
    def all(self) -> set[Link]:
        """All links, both sure and possible."""
        return self.sure | self.possible


@dataclass(frozen=True)
class Example:
    """A source sentence and the reference, if known, with their gold alignment."""

    source: Side
    target: Side | None = None
    links: Links | None = None
    """The gold word alignment, or None if it is unknown."""


def read_example(prefix: str, source: str, target: str | None, number: int) -> Example:
    """Read a sentence of a test set and the reference, with all gold annotation of both.

    Files are ``PREFIX.en``, ``PREFIX.de`` and, if they exist, ``PREFIX.heads.en``,
    ``PREFIX.labels.en``, ``PREFIX.trees.en`` and ``PREFIX.align``; for raw sentences also
    ``PREFIX.spans.en``, the character spans of their words.

    Args:
        prefix: the beginning of all file names.
        source: the source language.
        target: the target language; None: only the source is read.
        number: the number of the sentence, from 1.

    Raises:
        DataError: there is no such sentence, or its gold annotation does not fit its words.
    """
    of_source = _read_side(prefix, source, number)
    if target is None:
        return Example(of_source)
    of_target = _read_side(prefix, target, number)
    links = None
    align = Path(f"{prefix}.align")
    if align.exists():
        links = Links(*(_pick(kind, align, number) for kind in read_alignments(align)))
        words = WordAlignment(set(), (len(of_source.words), len(of_target.words)))
        with naming(f"{align}:{number}"):
            words.check_same_sentence(WordAlignment(links.all))
    return Example(of_source, of_target, links)


def _read_side(prefix: str, language: str, number: int) -> Side:
    def line(kind: str, read: Callable[[Path], Iterable[Any]]) -> Any:
        path = Path(f"{prefix}{kind}.{language}")
        if kind and not path.exists():
            return None
        return _pick(read(path), path, number)

    text: str = line("", read_lines)
    spans = line(".spans", read_spans)
    known = {
        "heads": line(".heads", read_heads),
        "labels": line(".labels", read_labels),
        "tree": line(".trees", read_trees),
    }
    side = Side(text.split(), **known)
    if spans:
        with naming(f"{prefix}.spans.{language}:{number}"):
            check_spans(spans, len(text))
        side = Side.cut(text, spans, **known)
    for kind, row in (
        ("heads", side.heads),
        ("labels", side.labels),
        ("trees", side.tree and list(side.tree.leaves())),
    ):
        with naming(f"{prefix}.{kind}.{language}:{number}"):
            if row and len(row) != len(side.words):
                raise DataError(
                    f"this is for {len(row)} words, but line {number} of {prefix}.{language} "
                    f"has {len(side.words)}; make it from this text"
                )
            if side.heads and kind == "heads":
                check_tree(side.heads)
    return side


def _pick(rows: Iterable[T], path: Path, number: int) -> T:
    row = list(islice(rows, number - 1, number))
    if not row:
        raise DataError(f"{path}: there is no line {number}")
    return row[0]
