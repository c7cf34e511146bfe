"""A sentence pair, printed by a program or analysed by a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from syncattn_fairseq.data.spans import Span, find_runs
from syncattn_fairseq.data.words import (
    Link,
    count_subwords,
    is_raw,
    join_subwords,
    join_text,
    locate_words,
)

if TYPE_CHECKING:
    from syncattn_fairseq.inference.record import Record, SideRecord

#: What fairseq prints for a subword that is not in the dictionary.
UNKNOWN = "<unk>"


@dataclass(frozen=True)
class PrintedSide:
    """The source or the target of a sentence pair: words, subwords and printed analyses.

    Attributes:
        words: the words; empty if they were not printed.
        subwords: the subwords of all words.
        lengths: the number of subwords of each word.
        heads: the word that each word attends to most, from 1, 0 for itself; None without parses.
        distances: for each gated layer, from 1, the gap before each subword.
        hides_words: whether an unknown subword may hide where words begin.
        text: the sentence as it was given; empty: its words, separated by spaces.
        spans: where each word is in the text, in characters from 0; None if this is unknown.
    """

    words: list[str] = field(default_factory=list)
    subwords: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    heads: list[int] | None = None
    distances: dict[int, list[float]] = field(default_factory=dict)
    hides_words: bool = False
    text: str = ""
    spans: list[Span] | None = None

    def __str__(self) -> str:
        """Return the sentence as one line of text."""
        return self.text or " ".join(self.words)

    def group_words(self, starts: Sequence[bool]) -> PrintedSide:
        """Return this source or target with adjacent words merged into groups.

        A group has the head of its last word, as a word has that of its last subword.

        Args:
            starts: whether each word is the first of a group; the first word is.
        """
        if all(starts):
            return self
        group_of = [number - 1 for number in accumulate(starts)]
        bounds = find_runs(starts)
        words = ["".join(self.words[first:past]) for first, past in bounds]
        heads, spans = None, None
        if self.heads is not None:
            above = [self.heads[past - 1] for _, past in bounds]
            groups = [head and 1 + group_of[head - 1] for head in above]
            heads = [0 if head == own else head for own, head in enumerate(groups, 1)]
        if self.spans is not None:
            spans = [(self.spans[first][0], self.spans[past - 1][1]) for first, past in bounds]
            words = [self.text[begin:end] for begin, end in spans]
        return replace(
            self,
            words=words,
            lengths=[sum(self.lengths[first:past]) for first, past in bounds],
            heads=heads,
            spans=spans,
        )

    def list_gaps(self, layer: int) -> list[float]:
        """Return the syntactic distance of each word to the word before it, from a gated layer."""
        distances = self.distances[layer]
        starts = [
            end - size for end, size in zip(accumulate(self.lengths), self.lengths, strict=True)
        ]
        return [distances[start] for start in starts]

    def lacks_words(self, count: int | None) -> bool:
        """Tell whether an unknown subword may hide word boundaries, so that words may be wrong.

        Args:
            count: how many words the text has; None if this is unknown.
        """
        if not self.hides_words:
            return False
        return count is None or count != len(self.words)


@dataclass(frozen=True)
class PrintedSentence:
    """A translation with its source, and the parses and links printed with both sentences.

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

    def group_words(
        self, source: Sequence[bool] | None, target: Sequence[bool] | None
    ) -> PrintedSentence:
        """Return the sentence pair with adjacent words of either side merged into groups.

        Args:
            source: whether each word of the source is the first of a group; None: all are.
            target: the same of the target.
        """
        source = source or [True] * len(self.source.words)
        target = target or [True] * len(self.target.words)
        of_source = [n - 1 for n in accumulate(source)]
        of_target = [n - 1 for n in accumulate(target)]

        def move(links: set[Link]) -> set[Link]:
            return {make_link(of_source[i], of_target[j]) for i, j in links}

        return replace(
            self,
            source=self.source.group_words(source),
            target=self.target.group_words(target),
            links=None if self.links is None else move(self.links),
            layer_links={layer: move(links) for layer, links in self.layer_links.items()},
        )


def make_side(subwords: Sequence[str], scheme: str) -> PrintedSide:
    """Make the source or target of a sentence pair from subwords, which are joined to words.

    Args:
        subwords: as fairseq printed them.
        scheme: how they are marked, see `syncattn_fairseq.data.words`.
    """
    words = join_subwords(subwords, scheme)
    text = join_text(subwords, scheme) if is_raw(scheme) else ""
    return PrintedSide(
        words=words,
        subwords=[*subwords],
        lengths=count_subwords(subwords, scheme),
        hides_words=scheme != "none" and UNKNOWN in " ".join(subwords),
        text=text,
        spans=locate_words(words, text) if text else None,
    )


def from_record(record: Record) -> PrintedSentence:
    """Convert a record, a line of ``syncattn-translate --jsonl``, into a printed sentence."""
    return PrintedSentence(
        record.target.text,
        _from_side(record.source),
        _from_side(record.target),
        None if record.links is None else _share(record.links),
        {layer: _share(links) for layer, links in record.layer_links.items()},
        record.forced,
    )


def _from_side(side: SideRecord) -> PrintedSide:
    return PrintedSide(
        side.words,
        side.subwords,
        side.lengths,
        side.heads,
        side.distances,
        text=side.text,
        spans=side.spans,
    )


def _share(links: Sequence[Link]) -> set[Link]:
    return {make_link(*link) for link in links}


@lru_cache(maxsize=2**16)
def make_link(source: int, target: int) -> Link:
    """Return the link of two words; reuse a single object for equal links, to save memory."""
    return source, target
