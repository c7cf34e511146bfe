"""Collect the data for groups of words: links and parses, fitted to the words of a test set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.data.words import Link
from syncattn_fairseq.parsing.formats import FORMATS, Analysis

from ..printed.output import has_analyses, read_output
from ..printed.sentences import PrintedSentence
from .alignment import read_alignments
from .translation import split_words
from .word_groups import Words


@dataclass(frozen=True)
class LinkedWords:
    """The word links of a test set, and the words connected by these links.

    Attributes:
        name: whose links they are, for tables.
        links: the links of each sentence, source first, from 0; None if a sentence has none.
        source: the words of each source; None: those of the test set.
        target: the words of each target; None: those of the text.
    """

    name: str
    links: Sequence[Iterable[Link] | None]
    source: Words | None = None
    target: Words | None = None


@dataclass
class Fitting:
    """Turns links between another tokenizer's words into links between the words of a test set.

    Words of two programs are compared by their characters: a link of ``don't`` is a link of both
    ``do`` and ``n't``.

    Attributes:
        left_out: the indices of the sentences whose words have other characters.
    """

    left_out: set[int] = field(default_factory=set)

    def fit(self, linked: LinkedWords, source: Words, target: Words) -> list[set[Link] | None]:
        """Return each sentence's links between the words of the test set.

        They are None for a sentence without links, or whose words have other characters.

        Args:
            linked: the links, and their words.
            source: the words of the test set's sources.
            target: the words of the references, or of the translations.

        Raises:
            DataError: the numbers of sentences differ, a link is outside its sentence, or no
                sentence is left.
        """
        if len(linked.links) != len(target):
            raise DataError(
                f"{linked.name}: has {len(linked.links)} lines, but there are {len(target)} "
                "references"
            )
        sides = zip(
            linked.links,
            *(linked.source or source, source, linked.target or target, target),
            strict=True,
        )
        found = [self._fit(linked.name, index, *one) for index, one in enumerate(sides)]
        if target and all(links is None for links in found):
            raise DataError(
                f"{linked.name}: the links do not fit the source and the references; check that "
                "they are of the same texts, and that --source and --references are split into "
                "the same words"
            )
        return found

    def _fit(
        self,
        name: str,
        index: int,
        links: Iterable[Link] | None,
        linked_source: Sequence[str],
        source: Sequence[str],
        linked_target: Sequence[str],
        target: Sequence[str],
    ) -> set[Link] | None:
        if links is None:
            return None
        places = match_words(linked_source, source), match_words(linked_target, target)
        if places[0] is None or places[1] is None:
            self.left_out.add(index)
            return None
        found = set()
        for i, j in links:
            if not (0 <= i < len(linked_source) and 0 <= j < len(linked_target)):
                raise DataError(
                    f"{name}: sentence {index + 1}: link {i}-{j}, counted from 0, lies outside the "
                    f"{len(linked_source)} source or the {len(linked_target)} target words"
                )
            found |= {(here, there) for here in places[0][i] for there in places[1][j]}
        return found


def match_words(words: Sequence[str], others: Sequence[str]) -> list[range] | None:
    """Return, for each word, the indices of the words in ``others`` that overlap with it.

    Args:
        words: the words of a sentence.
        others: the same sentence in other words.

    Returns:
        None if the characters differ; white space does not count.
    """
    ours = ["".join(word.split()) for word in words]
    theirs = ["".join(word.split()) for word in others]
    if "".join(ours) != "".join(theirs):
        return None
    if ours == theirs:
        return [range(index, index + 1) for index in range(len(ours))]
    owners = [index for index, word in enumerate(theirs) for _ in word]
    ends = [*accumulate(map(len, ours))]
    begins = [end - len(word) for end, word in zip(ends, ours, strict=True)]
    return [
        range(owners[begin], owners[end - 1] + 1) if begin < end else range(0)
        for begin, end in zip(begins, ends, strict=True)
    ]


def read_linked_words(path: str, scheme: str | None = None) -> LinkedWords:
    """Read word links between sources and targets from printed output or a Pharaoh file.

    Args:
        path: what ``syncattn-translate --jsonl`` or fairseq printed, with words; or a Pharaoh file.
        scheme: how fairseq's subwords are marked; None: detect it.

    Raises:
        DataError: the file cannot be read, or a sentence has no links.
    """
    if has_analyses(path):
        return collect_links(path, read_output(path, scheme))
    sure, possible = read_alignments(path)
    return LinkedWords(path, [one or other for one, other in zip(sure, possible, strict=True)])


def collect_links(name: str, printed: Sequence[PrintedSentence]) -> LinkedWords:
    """Return the word links printed by a model, and the words on both ends of the links.

    Raises:
        DataError: no sentence has links.
    """
    if all(sentence.links is None for sentence in printed):
        raise DataError(
            f"{name}: the output has no links; print links with syncattn-translate --jsonl, or "
            "with fairseq-generate --print-alignment"
        )
    return LinkedWords(
        name,
        [sentence.links for sentence in printed],
        [sentence.source.words for sentence in printed],
        [sentence.target.words for sentence in printed],
    )


def read_parses(path: str | Path) -> list[Analysis]:
    """Read the dependency parse of each sentence of a test set from a CoNLL-U file."""
    return [*FORMATS["conllu"](read_lines(path), str(path))]


def count_training(path: str | Path, words: Words, tokenize: str) -> dict[str, int]:
    """Count how often each word of a test set occurs in a training text.

    Args:
        path: the training text, a sentence on each line.
        words: the words of the test set. A word that the tokenizer splits is as frequent as the
            rarest of its parts.
        tokenize: the tokenizer of sacreBLEU that splits both.
    """
    types = [*{word for sentence in words for word in sentence}]
    parts = dict(zip(types, split_words(types, tokenize), strict=True))
    wanted = {part for each in parts.values() for part in each}
    counts = Counter(
        part
        for sentence in split_words(read_lines(path), tokenize)
        for part in sentence
        if part in wanted
    )
    return {word: min((counts[part] for part in each), default=0) for word, each in parts.items()}
