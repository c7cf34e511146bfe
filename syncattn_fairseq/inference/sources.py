"""Conversion of input texts and parses to a model's sentences.

A word's *parent* is its governor in the tree. Files and arguments that hold parses count words from
1, and 0 stands for the root, as the column HEAD of CoNLL-U does; ``parents`` of batches count
subwords from 0. *Heads* alone are attention heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ..base.errors import BadSentence, DataError, shorten
from ..base.text import is_encodable
from ..data.parses import check_tree
from ..data.spans import check_spans, move_spans
from ..data.words import is_raw, split_units, without_mark
from ..parsing.formats import FORMATS
from ..parsing.formats.parsed_sentence import Analysis
from ..parsing.parser import Parse as DependencyTree
from ..parsing.realign import place_words
from .answers import Sentence

Parses: TypeAlias = "str | Sequence[Sequence[int] | DependencyTree | None] | None"
"""Parses of sentences: CoNLL-U, or for each sentence the number of each word's parent, from 1, with
0 for the root, or a tree with its labels. A sentence without a parse is None; None alone stands for
no parses."""


def read_texts(lines: Sequence[str], what: str) -> list[str]:
    """Return texts as a list, after checking that each is a string encodable as UTF-8.

    Args:
        lines: the texts.
        what: what to call them in errors.

    Raises:
        TypeError: it is one string, or something in it is not a string.
        DataError: one of them has half of a character, which no UTF-8 has.
    """
    if isinstance(lines, str):
        raise TypeError(f"expected a list of {what}, got one string")
    texts = list(lines)
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise TypeError(
                f"expected a list of {what}, got one with {shorten(repr(text), 60)} in it"
            )
        if not is_encodable(text):
            fault = "not UTF-8: half of a character (a lone surrogate) in "
            fault += f"{shorten(repr(text), 60)}; give whole characters"
            if what == "sentences":
                raise BadSentence(number, fault)
            raise DataError(f"{what.removesuffix('s')} {number}: {fault}")
    return texts


def read_parses(
    parses: str | Sequence[Sequence[int] | DependencyTree | None],
) -> list[DependencyTree | Analysis | None]:
    """Convert parses to one tree for each sentence, or None for a sentence without a parse."""
    if isinstance(parses, str):
        read = FORMATS["conllu"](parses.split("\n"), "parses")
        return [None if analysis.heads is None else analysis for analysis in read]
    trees: list[DependencyTree | Analysis | None] = []
    for row in parses:
        if row is not None and not isinstance(row, DependencyTree):
            row = DependencyTree([*row], [])
        trees.append(row)
    return trees


def place_parse(
    tree: DependencyTree | Analysis | None, source: Sentence, text: str
) -> DependencyTree | None:
    """Return a parse; for raw text, its character spans are moved to the text the model reads.

    Args:
        tree: the parse. That of a raw sentence has spans in the text, or is of the words that the
            model's splitter finds.
        source: the sentence.
        text: the sentence as it was given.

    Raises:
        DataError: the words are not in the sentence.
    """
    if isinstance(tree, Analysis):
        if not is_raw(source.scheme):
            return DependencyTree(tree.heads or [], tree.labels)
        placed = place_words(text, tree)
        if placed is None:
            raise DataError(
                f"the parse has other words than the sentence ({' '.join(tree.words)[:40]!r})"
            )
        tree = placed
    if tree is None or not is_raw(source.scheme) or not tree.spans:
        return tree
    check_spans(tree.spans, len(text))
    return tree._replace(spans=move_spans(tree.spans, without_mark(text), str(source)))


def check_parse(tree: DependencyTree | None, source: Sentence, reads: frozenset[str]) -> None:
    """Check that a parse fits the sentence and has the parts read by the model.

    Args:
        tree: the parse, if there is one.
        source: the sentence.
        reads: what the model reads of a parse, ``heads`` or ``labels`` or both.

    Raises:
        DataError: the parse has another number of words, is no tree, or lacks labels that the model
            reads.
    """
    if tree is None:
        return
    words = len(tree.spans) or len(split_units(source.pieces, source.scheme).of_words)
    if len(tree.heads) != words:
        raise DataError(f"the parse has {len(tree.heads)} words, but the sentence has {words}")
    if "labels" in reads and not tree.labels:
        raise DataError("the model also reads dependency labels; give the parses as CoNLL-U")
    if not all(map(is_encodable, tree.labels)):
        raise DataError("a dependency label is not UTF-8: it has half of a character")
    if tree.heads:
        check_tree(tree.heads)
