"""Compare analyses with gold data that splits the same characters into other words.

Models of raw sentences show the words of a splitter, and parsers find their own. Both are brought
together as subwords and words are (`syncattn_fairseq.data.spans.find_units`): words of an analysis
that are parts of one gold word are one, and so are gold words that are parts of one word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise, product
from pathlib import Path
from typing import NamedTuple

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.packed import Packed
from syncattn_fairseq.data.parses import read_spans
from syncattn_fairseq.data.spans import Span, Units, check_spans, find_units, skip_spaces
from syncattn_fairseq.data.words import Link, find_letters

from ..printed.sentences import PrintedSentence, PrintedSide


class GoldWords(NamedTuple):
    """The words of a sentence in the gold data, as spans of the sentence's characters.

    Attributes:
        letters: the characters of the sentence that are not white space.
        spans: the words, as places among these.
    """

    letters: str
    spans: list[Span]


def read_gold_words(
    sentences: Sequence[str], path: str | Path | None = None
) -> Sequence[GoldWords]:
    """Return the gold words of each sentence, split at spaces or by the spans in a file.

    Args:
        sentences: the text.
        path: where its words are, as ``syncattn-parse --spans`` writes it; None: words are
            separated by spaces.

    Raises:
        DataError: there are more or fewer lines, or a line's spans are none of its sentence.
    """
    spans = Packed(read_spans(path)) if path else None
    if spans is not None and len(spans) != len(sentences):
        raise DataError(
            f"{path}: has {len(spans)} lines, but the text of the words has {len(sentences)}"
        )
    return Packed(_read_words(sentences, spans, path))


def _read_words(
    sentences: Sequence[str], spans: Sequence[list[Span]] | None, path: str | Path | None
) -> Iterator[GoldWords]:
    for number, sentence in enumerate(sentences):
        words = sentence.split()
        if spans is None:
            places = [*pairwise(accumulate(map(len, words), initial=0))]
        else:
            with naming(f"{path}:{number + 1}"):
                check_spans(spans[number], len(sentence))
            places = skip_spaces(spans[number], sentence)
        yield GoldWords(find_letters(sentence), places)


def find_groups(side: PrintedSide, gold: GoldWords) -> Units:
    """Merge a sentence's printed words into groups that begin and end where gold words do.

    Raises:
        DataError: the sentences differ.
    """
    words = ["".join(word.split()) for word in side.words]
    letters = "".join(words)
    if find_letters(letters) != gold.letters:
        raise DataError(
            f"the analysis is of another sentence: {letters[:40]!r}, but the gold sentence is "
            f"{gold.letters[:40]!r}"
        )
    return find_units([*pairwise(accumulate(map(len, words), initial=0))], gold.spans)


def move_links(sentence: PrintedSentence, source: GoldWords, target: GoldWords) -> PrintedSentence:
    """Turn a sentence's links between printed words into links between gold words.

    It has no heads and distances. A sentence whose words are hidden stays as it is.

    Args:
        sentence: the sentence.
        source: the gold words of its source.
        target: those of its target.

    Raises:
        DataError: the sentences differ.
    """
    if sentence.source.hides_words or sentence.target.hides_words:
        return sentence
    sides, pieces = [], []
    for name, gold in (("source", source), ("target", target)):
        with naming(name):
            units = find_groups(getattr(sentence, name), gold)
        numbers = [number - 1 for number in accumulate(units.starts)]
        groups = [[n for n, each in enumerate(units.of_words) if each == own] for own in numbers]
        pieces.append(groups)
        words = [gold.letters[begin:end] for begin, end in gold.spans]
        sides.append(PrintedSide(words, text=str(getattr(sentence, name))))

    def move(links: set[Link]) -> set[Link]:
        return {link for i, j in links for link in product(pieces[0][i], pieces[1][j])}

    return replace(
        sentence,
        source=sides[0],
        target=sides[1],
        links=None if sentence.links is None else move(sentence.links),
        layer_links={layer: move(links) for layer, links in sentence.layer_links.items()},
    )
