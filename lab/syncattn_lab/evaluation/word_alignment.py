"""Align words, using the links of subwords that a decoder printed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.packed import Packed
from syncattn_fairseq.data.analysis_lines import Link, LinksOf
from syncattn_fairseq.data.words import count_subwords, detect_scheme, link_words

from ..printed.decoded import DecodedSentence, read_decoded
from .alignment import is_pharaoh, read_alignments

_UNKNOWN = "<unk>"


@dataclass(frozen=True)
class WordAlignment:
    """The links between the words of one sentence, and how many words there are."""

    links: set[Link]
    words: tuple[int, int] | None = None
    """Of the source, and of the target; None if unknown."""

    def reversed(self) -> WordAlignment:
        """Swap source and target."""
        return WordAlignment({(i, j) for j, i in self.links}, self.words and self.words[::-1])

    def check_gold(self, gold: Iterable[Link]) -> None:
        """Raise `DataError` if a gold link lies outside the sentence."""
        if outside := self._find_outside(gold):
            raise DataError(f"gold {outside}; a file that counts from 1 needs --one-based")

    def check_same_sentence(self, other: WordAlignment) -> None:
        """Raise `DataError` if another alignment cannot belong to the same sentence."""
        if self.words and other.words and self.words != other.words:
            raise DataError(f"{other.words} source and target words, but {self.words}")
        if outside := self._find_outside(other.links):
            raise DataError(outside)

    def _find_outside(self, links: Iterable[Link]) -> str:
        source, target = self.words or (math.inf, math.inf)
        for i, j in links:
            if i >= source or j >= target:
                return (
                    f"link {i}-{j}, counted from 0, lies outside the {source} source or the "
                    f"{target} target words"
                )
        return ""


def align_words(
    sentence: DecodedSentence,
    scheme: str,
    source_words: int | None = None,
    target_words: int | None = None,
) -> WordAlignment | None:
    """Turn the links of a sentence's subwords into links of its words; `DataError` without them.

    The scheme says how subwords are marked (see `syncattn_fairseq.data.words`); the numbers of
    words may be known. None if an unknown subword hides where words begin.
    """
    if sentence.links is None:
        raise DataError("there is no A- line; decode with --score-reference --print-alignment")
    source = count_subwords(sentence.source.split(), scheme)
    target = count_subwords(sentence.hypothesis.split(), scheme)
    if hides_words(sentence.source, len(source), scheme, source_words) or hides_words(
        sentence.hypothesis, len(target), scheme, target_words
    ):
        return None
    return WordAlignment(link_words(sentence.links, source, target), (len(source), len(target)))


def hides_words(text: str, words: int, scheme: str, true_words: int | None = None) -> bool:
    """Return whether fairseq printed an unknown subword, which may hide where a word ends.

    The subwords of the text seem to be so many words; how many there are may be known.
    """
    if _UNKNOWN not in text:
        return False
    return scheme != "none" if true_words is None else true_words != words


def read_word_alignments(
    path: str | Path, scheme: str | None = None, backward: bool = False
) -> dict[LinksOf | None, Packed[WordAlignment | None]]:
    """Read the alignments that a decoder printed, or those of a Pharaoh file (``0-0 1-2``).

    Args:
        path: the decoder's output, in subwords; or links of words, source-target and from 0, a line
            for each sentence, as fast_align writes them in both directions.
        scheme: how subwords are marked; None: detect it.
        backward: the decoder translates from our target to our source.

    Returns by layer and head (``--print-layer-alignments``), or None (``--print-alignment``), an
    alignment per sentence, None if an unknown subword hides where words begin.

    Raises:
        DataError: the file cannot be read, or a sentence has no links.
    """
    if is_pharaoh(path):
        sure, possible = read_alignments(path)
        both = zip(sure, possible, strict=True)
        return {None: Packed(WordAlignment(one | other) for one, other in both)}
    decoded = read_decoded(path)
    scheme = scheme or detect_scheme(text for s in decoded for text in (s.source, s.hypothesis))
    topics = {topic for sentence in decoded for topic in sentence.layer_links}
    chosen: list[LinksOf | None] = [*sorted(topics)]
    if not topics or any(sentence.links is not None for sentence in decoded):
        chosen.insert(0, None)
    by_topic: dict[LinksOf | None, Packed[WordAlignment | None]] = {
        layer: Packed() for layer in chosen
    }
    for number, sentence in enumerate(decoded, 1):
        for topic, alignments in by_topic.items():
            if topic is not None:
                sentence = replace(sentence, links=sentence.layer_links.get(topic))
            with naming(f"{path}: sentence {number}"):
                alignment = align_words(sentence, scheme)
            alignments.append(alignment.reversed() if alignment and backward else alignment)
    return by_topic


def pair_sentences(
    outputs: Mapping[str, Sequence[WordAlignment | None]],
) -> Iterator[list[WordAlignment] | None]:
    """Yield each sentence's alignments, None if an output has none; `DataError` if they differ."""
    (first, expected), *_ = outputs.items()
    for name, alignments in outputs.items():
        if len(alignments) != len(expected):
            raise DataError(f"{name}: {len(alignments)} sentences, but {len(expected)} in {first}")
    left = 0
    for index, row in enumerate(zip(*outputs.values(), strict=True)):
        known = {name: alignment for name, alignment in zip(outputs, row, strict=True) if alignment}
        # Compare with an output that knows the number of words, if there is one.
        model = next((name for name, alignments in known.items() if alignments.words), first)
        for name, alignment in known.items():
            try:
                known.get(model, alignment).check_same_sentence(alignment)
            except DataError as error:
                raise DataError(
                    f"{name}: sentence {index + 1}: {error} in {model}; give outputs of the same "
                    "sentences, and target-to-source models as --backward"
                ) from None
        left += len(known) == len(outputs)
        yield list(known.values()) if len(known) == len(outputs) else None
    if not left:
        raise DataError("no sentence is left: an unknown subword hides the words of each")
