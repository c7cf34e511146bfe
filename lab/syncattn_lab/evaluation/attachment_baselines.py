"""Baselines of attachment scores: parses made without knowledge of syntax.

A head that finds a word's parent may only have learnt how far away parents usually are, and after
which words. `OffsetTable` knows just that, from counts; `score_baselines` scores it, the best fixed
offset and random trees.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

import numpy as np

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.packed import Packed
from syncattn_fairseq.data.controls import draw_tree

from .attachment import AttachmentScore, Heads, score_attachment

#: Stands for the root among offsets; no word is its own head.
ROOT = 0
#: Stands before the first subword of a sentence, as the end of sentence does for a decoder.
_START = ""
#: How many subwords of the context count at most, and how often a context must have been seen.
_LONGEST, _LEAST = 3, 2
#: Of the random trees.
_SEED = 1


class OffsetTable:
    """A baseline parser that predicts each head's most frequent offset, given up to three subwords.

    Of a context that was seen less than twice, or whose offsets all lead out of the sentence, the
    shorter one counts, down to the empty one. Offsets are in words.

    Args:
        sees_word: whether the context ends with the word's own last subword, as an encoder sees it
            and a decoder's row that reads it; otherwise it ends before it, as for a decoder's row
            that predicts it.
        left_only: whether only words count whose head is the root or to their left.
    """

    def __init__(self, sees_word: bool, left_only: bool) -> None:
        self.sees_word = sees_word
        self.left_only = left_only
        self._counts: defaultdict[tuple[str, ...], Counter[int]] = defaultdict(Counter)

    def add(self, subwords: Sequence[str], lengths: Sequence[int], heads: Heads) -> None:
        """Count the offsets from the words of a parsed sentence to their heads.

        Args:
            subwords: of all words.
            lengths: the number of subwords of each word.
            heads: the head of each word, from 1; 0 is the root.

        Raises:
            DataError: the numbers of words differ.
        """
        if len(lengths) != len(heads):
            raise DataError(f"{len(lengths)} words, but {len(heads)} heads")
        contexts = self._list_contexts(subwords, lengths)
        for position, (context, head) in enumerate(zip(contexts, heads, strict=True), 1):
            if not self.left_only or head <= position:
                for start in range(len(context) + 1):
                    self._counts[context[start:]][head and head - position] += 1

    def predict(self, subwords: Sequence[str], lengths: Sequence[int]) -> list[int]:
        """Predict the dependency head of each word of a sentence, from 1; 0 is the root."""
        contexts = self._list_contexts(subwords, lengths)
        return [self._predict(x, position, len(lengths)) for position, x in enumerate(contexts, 1)]

    def _predict(self, context: tuple[str, ...], position: int, words: int) -> int:
        for start in range(len(context) + 1):
            offsets = self._counts.get(context[start:], Counter())
            if start < len(context) and offsets.total() < _LEAST:
                continue
            inside = [x for x in offsets if x == ROOT or 1 <= position + x <= words]
            if inside:
                best = min(inside, key=lambda x: (-offsets[x], abs(x), x))
                return position + best if best else 0
        return 0

    def _list_contexts(
        self, subwords: Sequence[str], lengths: Sequence[int]
    ) -> list[tuple[str, ...]]:
        """Return, for each word, the last subwords in view of its row of attention."""
        seen = (*[_START] * _LONGEST, *subwords)
        ends = [_LONGEST + end - (not self.sees_word) for end in accumulate(lengths)]
        return [seen[end - _LONGEST : end] for end in ends]


def score_baselines(
    gold: Sequence[Heads | None],
    left_only: bool,
    table: OffsetTable | None = None,
    sentences: Iterable[tuple[Sequence[str], Sequence[int]]] = (),
    labels: Sequence[Sequence[str] | None] | None = None,
) -> dict[str, AttachmentScore]:
    """Score parses made without knowledge of syntax against gold heads; return scores by name.

    Args:
        gold: of each sentence; those without are left out.
        left_only: as for `score_attachment`.
        table: counts of another text, if there are any.
        sentences: the subwords of each sentence, and how many each word has, for the table.
        labels: gold labels of each sentence.

    Returns:
        Scores by name: ``best offset N``, the best fixed one on this very text; ``counts``, if
        there is a table; and ``random trees``.
    """
    parses = guess_parses(gold, left_only, table, sentences)
    return {name: score_attachment(x, gold, left_only, labels) for name, x in parses.items()}


def guess_parses(
    gold: Sequence[Heads | None],
    left_only: bool,
    table: OffsetTable | None = None,
    sentences: Iterable[tuple[Sequence[str], Sequence[int]]] = (),
) -> dict[str, Sequence[Heads]]:
    """Return parses made without knowledge of syntax, by the names used in `score_baselines`.

    Args:
        gold, left_only, table, sentences: as for `score_baselines`.
    """
    offset = _find_best_offset(gold, left_only)
    generator = np.random.default_rng(_SEED)
    fixed: Packed[Heads] = Packed(_shift(len(heads or ()), offset) for heads in gold)
    drawn: Packed[Heads] = Packed(draw_tree(len(x), generator).tolist() if x else [] for x in gold)
    parses: dict[str, Sequence[Heads]] = {f"best offset {say_offset(offset)}": fixed}
    if table is not None:
        parses["counts"] = Packed(table.predict(*sentence) for sentence in sentences)
    parses["random trees"] = drawn
    return parses


def say_offset(offset: int) -> str:
    """Format the offset from a word to its head: ``+1``, ``−2``, or ``root``."""
    return "root" if offset == ROOT else f"{offset:+d}".replace("-", "−")


def _find_best_offset(gold: Sequence[Heads | None], left_only: bool) -> int:
    """Return the most accurate fixed offset to the head, with heads outside as the root."""
    offsets: Counter[int] = Counter({ROOT: 0})
    for heads in gold:
        for position, head in enumerate(heads or (), 1):
            if head and (not left_only or head <= position):
                offsets[head - position] += 1
    for heads in gold:
        for root in (position for position, head in enumerate(heads or (), 1) if not head):
            for offset in offsets:
                inside = offset != ROOT and 1 <= root + offset <= len(heads or ())
                offsets[offset] += not inside
    return min(offsets, key=lambda x: (-offsets[x], abs(x), x))


def _shift(words: int, offset: int) -> list[int]:
    """Return heads at a fixed offset from each word; heads outside the sentence become the root."""
    heads = range(1 + offset, words + 1 + offset)
    return [head if offset != ROOT and 1 <= head <= words else 0 for head in heads]


def describe_baselines(baselines: Mapping[str, AttachmentScore]) -> str:
    """Format the baselines' scores in a line: ``best offset +1 36.2, random trees 9.8``."""
    return ", ".join(f"{name} {100 * score.uas:.1f}" for name, score in baselines.items())
