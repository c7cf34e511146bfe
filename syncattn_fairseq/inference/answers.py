"""A model's answers about a sentence: translation, parses, links and distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, compress
from typing import Generic, TypeVar

import numpy as np

from ..base.errors import DataError
from ..data.spans import Span
from ..data.words import (
    Link,
    count_subwords,
    find_word_heads,
    find_word_starts,
    is_raw,
    join_subwords,
    join_text,
    link_words,
    locate_words,
)
from ..parsing.parser import Parse as DependencyTree
from ..trees.binary import split_by_distances
from ..trees.tree import Tree, format_conllu
from .best_tree import best_tree


@dataclass(frozen=True)
class Sentence:
    """A sentence as a model's input or output subwords.

    Args:
        pieces: the subwords.
        scheme: how the subwords are marked, see :func:`..data.words.find_word_starts`.
        given: the dependency tree that the caller gave; None: the model's parser parses.
    """

    pieces: Sequence[str]
    scheme: str
    given: DependencyTree | None = None

    @cached_property
    def words(self) -> list[str]:
        """The words composed of the subwords."""
        return join_subwords(self.pieces, self.scheme)

    @cached_property
    def lengths(self) -> list[int]:
        """The number of subwords of each word."""
        return count_subwords(self.pieces, self.scheme)

    @cached_property
    def spans(self) -> list[Span]:
        """The begin and end of each word in the sentence's text, in characters from 0."""
        return locate_words(self.words, str(self)) or []

    def __str__(self) -> str:
        """Return the sentence as text: words separated by spaces, or the raw sentence."""
        return join_text(self.pieces, self.scheme)


class Translation(str):
    """A translation as a string, with its subwords, score and faults as attributes.

    Attributes:
        sentence: the subwords.
        score: mean natural log-probability per subword, counting the end of sentence, with the
            model's length penalty; NaN if the model did not write the translation.
        cut: whether the search came to the model's ``max_len``; the translation may be incomplete.
        unparsed: whether the model reads parses, and its source had none.
        too_long: why the source was not translated; empty: it was.
    """

    sentence: Sentence
    score: float
    cut: bool
    unparsed: bool
    too_long: str = ""

    def __new__(
        cls,
        sentence: Sentence,
        score: float = float("nan"),
        cut: bool = False,
        unparsed: bool = False,
        text: str | None = None,
    ) -> Translation:
        """Create a translation; without ``text``, the subwords are joined to its text."""
        translation = super().__new__(cls, sentence if text is None else text)
        translation.sentence, translation.score = sentence, score
        translation.cut, translation.unparsed = cut, unparsed
        return translation

    def write(self, text: str) -> Translation:
        """Return a copy of the translation with another text, such as the detokenised one."""
        translation = Translation(self.sentence, self.score, self.cut, self.unparsed, text)
        translation.too_long = self.too_long
        return translation


@dataclass(frozen=True)
class Parse:
    """A dependency parse: the attention weights from each subword to its dependency head.

    Args:
        sentence: n subwords.
        attention: ``(n, n)`` probabilities, row = dependent, mean over the dependency heads; the
            rest of each row, up to 1, goes to the end of sentence.
    """

    sentence: Sentence
    attention: np.ndarray

    @cached_property
    def piece_heads(self) -> list[int]:
        """The index, from 0, of the subword that each subword attends to most."""
        return self.attention.argmax(1).tolist() if self.attention.size else []

    @cached_property
    def heads(self) -> list[int]:
        """The number, from 1, of the word that each word attends to most; 0 for itself.

        A word's last subword stands for it (rule ``chain``). These heads may form cycles or have
        several roots; those of :attr:`tree` do not.
        """
        return find_word_heads(self.piece_heads, self.sentence.lengths)

    @cached_property
    def tree(self) -> list[int]:
        """The dependency head of each word, from 1, in the most probable tree; 0 for its root.

        The tree has one root. The probability of a head is the attention of the word's last subword
        to that head's subwords; of being the root, its attention to its own word.
        """
        lengths = self.sentence.lengths
        if not lengths:
            return []
        ends = np.array([*accumulate(lengths)], dtype=np.int64)
        words = np.add.reduceat(self.attention[ends - 1], ends - lengths, axis=1)
        return best_tree(words)

    def conllu(self) -> str:
        """Return the tree in CoNLL-U, including the blank line at the end.

        A model's heads have no labels: every relation except ``root`` is ``dep``.
        """
        labels = ["dep" if head else "root" for head in self.tree]
        sentence = self.sentence
        where = (str(sentence), sentence.spans) if is_raw(sentence.scheme) else None
        return format_conllu(sentence.words, self.tree, labels, where=where)


@dataclass(frozen=True)
class Alignment:
    """A word alignment: the attention weights from each target subword to the source.

    Args:
        source: n subwords.
        target: m subwords.
        attention: ``(m, n)`` probabilities of one layer, mean over its heads; the rest of each row,
            up to 1, goes to the end of sentence.
    """

    source: Sentence
    target: Sentence
    attention: np.ndarray

    @cached_property
    def piece_links(self) -> list[Link]:
        """The links (source, target) of subwords, from 0; each target subword has one link."""
        if not self.attention.size:
            return []
        return [(source, target) for target, source in enumerate(self.attention.argmax(1).tolist())]

    @cached_property
    def links(self) -> list[Link]:
        """The links (source, target) of words, from 0; linked subwords link their words."""
        return sorted(link_words(self.piece_links, self.source.lengths, self.target.lengths))

    def __str__(self) -> str:
        """Return the word links in the Pharaoh format, such as ``0-0 1-2``."""
        return " ".join(f"{source}-{target}" for source, target in self.links)


@dataclass(frozen=True)
class Distances:
    """The syntactic distances between the neighbouring subwords of a sentence, by layer.

    Args:
        sentence: n subwords.
        layers: for each layer number, from 1, the n distances, mean over the heads; each is the gap
            before its subword.
        temperature: τ of the gates that they set.
    """

    sentence: Sentence
    layers: dict[int, list[float]]
    temperature: float = 1.0

    def of_words(self, layer: int | None = None) -> list[float]:
        """Return the syntactic distance before each word, as one layer measures it.

        Args:
            layer: from 1; None: the highest.

        Raises:
            DataError: the layer measures no distances.
        """
        if layer is not None and layer not in self.layers:
            known = ", ".join(map(str, self.layers))
            raise DataError(
                f"layer {layer} has no syntactic distances; choose from the layers {known}"
            )
        distances = self.layers[max(self.layers) if layer is None else layer]
        return [*compress(distances, find_word_starts(self.sentence.pieces, self.sentence.scheme))]

    def tree(self, layer: int | None = None) -> Tree | None:
        """Return the binary tree split at the largest distances, or None for an empty sentence."""
        gaps = self.of_words(layer)
        return split_by_distances(gaps, self.sentence.words) if gaps else None


T = TypeVar("T")


@dataclass(frozen=True)
class Pair(Generic[T]):
    """A translation, with the `Parse` or the `Distances` of each side; None if a side has none."""

    translation: Translation
    source: T | None
    target: T | None
