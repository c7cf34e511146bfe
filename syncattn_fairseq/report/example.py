"""One sentence to draw, with what is known about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ..base.errors import DataError, naming
from ..base.files import read_lines
from ..data.parses import check_tree, read_heads, read_labels
from ..evaluation.alignment import Link, read_alignments
from ..evaluation.word_alignment import WordAlignment
from ..trees.brackets import Tree, read_trees

T = TypeVar("T")


@dataclass(frozen=True)
class Side:
    """A sentence in one language; unknown facts are None."""

    words: list[str]
    heads: list[int] | None = None
    """From 1; 0 is the root."""
    labels: list[str] | None = None
    tree: Tree | None = None

    @property
    def text(self) -> str:
        """The words as a line."""
        return " ".join(self.words)


@dataclass(frozen=True)
class Example:
    """A source, and its reference if known."""

    source: Side
    target: Side | None = None
    sure: set[Link] = field(default_factory=set)
    possible: set[Link] = field(default_factory=set)


def read_example(prefix: str, source: str, target: str, number: int) -> Example:
    """Read one sentence of a test set, with all of its available gold annotation.

    Args:
        prefix: of the files ``PREFIX.en``, ``PREFIX.de``, ``PREFIX.heads.en``,
            ``PREFIX.labels.en``, ``PREFIX.trees.en`` and ``PREFIX.align``, of which only the first
            must exist.
        source, target: the languages, ``en`` and ``de`` here.
        number: number of the sentence, from 1.

    Raises:
        DataError: there is no such sentence, or its gold does not fit its words.
    """
    sides = [_read_side(prefix, language, number) for language in (source, target)]
    of_source, of_target = sides
    if of_source is None:
        raise DataError(f"{prefix}.{source}: no such file")
    sure: set[Link] = set()
    possible: set[Link] = set()
    align = Path(f"{prefix}.align")
    if of_target and align.exists():
        sure, possible = (_pick(links, align, number) for links in read_alignments(align))
        words = WordAlignment(set(), (len(of_source.words), len(of_target.words)))
        with naming(f"{align}:{number}"):
            words.check_same_sentence(WordAlignment(sure | possible))
    return Example(of_source, of_target, sure, possible)


def _read_side(prefix: str, language: str, number: int) -> Side | None:
    def line(kind: str, read: Callable[[Path], Iterable[Any]]) -> Any:
        path = Path(f"{prefix}{kind}.{language}")
        if not path.exists():
            return None
        return _pick(read(path), path, number)

    text = line("", read_lines)
    if text is None:
        return None
    side = Side(
        text.split(),
        line(".heads", read_heads),
        line(".labels", read_labels),
        line(".trees", read_trees),
    )
    for kind, found in (
        ("heads", side.heads),
        ("labels", side.labels),
        ("trees", side.tree and list(side.tree.leaves())),
    ):
        with naming(f"{prefix}.{kind}.{language}:{number}"):
            if found and len(found) != len(side.words):
                raise DataError(
                    f"this is for {len(found)} words, but line {number} of {prefix}.{language} "
                    f"has {len(side.words)}; make it from this text"
                )
            if side.heads and kind == "heads":
                check_tree(side.heads)
    return side


def _pick(rows: Iterable[T], path: Path, number: int) -> T:
    found = list(islice(rows, number - 1, number))
    if not found:
        raise DataError(f"{path}: there is no line {number}")
    return found[0]
