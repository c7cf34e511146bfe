"""A sentence pair, printed by a program or analysed by a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from syncattn_fairseq.data.words import Link, count_subwords, join_subwords

if TYPE_CHECKING:
    from syncattn_fairseq.inference.record import Record, SideRecord

#: What fairseq prints for a subword that is not in the dictionary.
UNKNOWN = "<unk>"


@dataclass(frozen=True)
class PrintedSide:
    """The source or the target of a sentence pair, as far as printed.

    Attributes:
        words: the words; empty if they were not printed.
        subwords: the subwords of all words.
        lengths: the number of subwords of each word.
        heads: the word that each word attends to most, from 1, 0 for itself; None without parses.
        distances: for each gated layer, from 1, the gap before each subword.
        hides_words: whether an unknown subword may hide where words begin.
    """

    words: list[str] = field(default_factory=list)
    subwords: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    heads: list[int] | None = None
    distances: dict[int, list[float]] = field(default_factory=dict)
    hides_words: bool = False

    def list_gaps(self, layer: int) -> list[float]:
        """Return the gap before each word that a layer measured."""
        distances = self.distances[layer]
        starts = [
            end - size for end, size in zip(accumulate(self.lengths), self.lengths, strict=True)
        ]
        return [distances[start] for start in starts]

    def lacks_words(self, count: int | None) -> bool:
        """Return whether the words are not those of the text.

        Args:
            count: how many words the text has; None if this is unknown.
        """
        if not self.hides_words:
            return False
        return count is None or count != len(self.words)


@dataclass(frozen=True)
class PrintedSentence:
    """A translation, and what else was printed of the pair.

    Attributes:
        translation: its text, with subwords joined.
        source: the source.
        target: the translation in words and subwords.
        links: linked words of source and target, from 0; None without links.
        layer_links: those of decoder layers, by the layer and its head, from 1; head 0 stands for
            the mean of all heads.
        forced: whether the translation was given to the model.
    """

    translation: str
    source: PrintedSide = field(default_factory=PrintedSide)
    target: PrintedSide = field(default_factory=PrintedSide)
    links: set[Link] | None = None
    layer_links: dict[tuple[int, int], set[Link]] = field(default_factory=dict)
    forced: bool = False


def make_side(subwords: Sequence[str], scheme: str) -> PrintedSide:
    """Make a side from its subwords alone.

    Args:
        subwords: as fairseq printed them.
        scheme: how they are marked, see `syncattn_fairseq.data.words`.
    """
    return PrintedSide(
        words=join_subwords(subwords, scheme),
        subwords=[*subwords],
        lengths=count_subwords(subwords, scheme),
        hides_words=scheme != "none" and UNKNOWN in " ".join(subwords),
    )


def from_record(record: Record) -> PrintedSentence:
    """Return what a line of ``syncattn-translate --jsonl`` says."""
    return PrintedSentence(
        record.target.text,
        _from_side(record.source),
        _from_side(record.target),
        None if record.links is None else _share(record.links),
        {layer: _share(links) for layer, links in record.layer_links.items()},
        record.forced,
    )


def _from_side(side: SideRecord) -> PrintedSide:
    return PrintedSide(side.words, side.subwords, side.lengths, side.heads, side.distances)


def _share(links: Sequence[Link]) -> set[Link]:
    return {make_link(*link) for link in links}


@lru_cache(maxsize=2**16)
def make_link(source: int, target: int) -> Link:
    """Return a link; the same object each time, since a large text has few different ones."""
    return source, target
