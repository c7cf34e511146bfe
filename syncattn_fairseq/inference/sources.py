"""Sources and translations as a model reads them: lists of texts, and the parses given with them.

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
from ..parsing.formats import FORMATS
from ..parsing.parser import Parse as DependencyTree
from .answers import Sentence

Parses: TypeAlias = "str | Sequence[Sequence[int] | DependencyTree | None] | None"
"""Parses of sentences: CoNLL-U, or for each sentence the number of each word's parent, from 1, with
0 for the root, or a tree with its labels. A sentence without a parse is None; None alone stands for
no parses."""


def read_texts(lines: Sequence[str], what: str) -> list[str]:
    """Return a list of texts.

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
            raise TypeError(f"expected a list of {what}, got {shorten(repr(text), 60)} in it")
        if not is_encodable(text):
            fault = "not UTF-8: half of a character (a lone surrogate) in "
            fault += f"{shorten(repr(text), 60)}; give whole characters"
            if what == "sentences":
                raise BadSentence(number, fault)
            raise DataError(f"{what.removesuffix('s')} {number}: {fault}")
    return texts


def read_parses(
    parses: str | Sequence[Sequence[int] | DependencyTree | None],
) -> list[DependencyTree | None]:
    """Return the tree of each sentence, or None for a sentence without one."""
    if isinstance(parses, str):
        read = FORMATS["conllu"](parses.split("\n"), "parses")
        return [None if x.heads is None else DependencyTree(x.heads, x.labels) for x in read]
    trees = []
    for row in parses:
        if row is not None and not isinstance(row, DependencyTree):
            row = DependencyTree([*row], [])
        trees.append(row)
    return trees


def check_parse(tree: DependencyTree | None, source: Sentence, reads: frozenset[str]) -> None:
    """Check that a parse fits its sentence.

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
    if len(tree.heads) != len(source.words):
        raise DataError(f"a parse of {len(tree.heads)} words for {len(source.words)} words")
    if "labels" in reads and not tree.labels:
        raise DataError("the model reads labels, too; give the parses as CoNLL-U")
    if not all(map(is_encodable, tree.labels)):
        raise DataError("a label is not UTF-8: it has half of a character")
    if tree.heads:
        check_tree(tree.heads)
