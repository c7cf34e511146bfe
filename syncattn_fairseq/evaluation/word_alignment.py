"""Alignments of words, from what a decoder printed of subwords."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..base.errors import DataError
from ..data.analysis_lines import LinksOf
from ..data.words import detect_scheme, word_lengths
from .alignment import Link, word_links
from .fairseq_output import DecodedSentence, read_decoded

_UNKNOWN = "<unk>"


@dataclass(frozen=True)
class WordAlignment:
    """The links between the words of one sentence, and how many words there are."""

    links: set[Link]
    words: tuple[int, int]
    """Of the source, and of the target."""

    def reversed(self) -> WordAlignment:
        """Swap source and target."""
        return WordAlignment({(i, j) for j, i in self.links}, self.words[::-1])

    def check_gold(self, gold: Iterable[Link]) -> None:
        """Raise `DataError` for a gold link that lies outside the sentence."""
        source, target = self.words
        for i, j in gold:
            if i >= source or j >= target:
                raise DataError(
                    f"gold link {i}-{j}, counted from 0, lies outside the {source} source or the "
                    f"{target} target words; a file that counts from 1 needs --one-based"
                )


def word_alignment(
    sentence: DecodedSentence,
    scheme: str,
    source_words: int | None = None,
    target_words: int | None = None,
) -> WordAlignment | None:
    """Turn the links of one sentence's subwords into links of its words.

    Args:
        sentence: what was printed, in subwords.
        scheme: how subwords are marked (see `syncattn_fairseq.data.words`).
        source_words: number of words of the source, if it is known.
        target_words: the same of the target.

    Returns:
        None where an unknown subword hides where words begin.

    Raises:
        DataError: there are no links, or a link lies outside the sentence.
    """
    if sentence.links is None:
        raise DataError("it has no A- line; decode with --score-reference --print-alignment")
    source = word_lengths(sentence.source.split(), scheme)
    target = word_lengths(sentence.hypothesis.split(), scheme)
    if hides_words(sentence.source, len(source), scheme, source_words) or hides_words(
        sentence.hypothesis, len(target), scheme, target_words
    ):
        return None
    return WordAlignment(word_links(sentence.links, source, target), (len(source), len(target)))


def hides_words(text: str, words: int, scheme: str, true_words: int | None = None) -> bool:
    """Whether fairseq printed an unknown subword whose mark, now lost, told where a word ends.

    Args:
        text: subwords of one sentence.
        words: how many words they seem to be.
        scheme: how subwords are marked.
        true_words: how many words there are, if it is known.
    """
    if _UNKNOWN not in text:
        return False
    return scheme != "none" if true_words is None else true_words != words


def read_word_alignments(
    path: str | Path, scheme: str | None = None, backward: bool = False
) -> dict[LinksOf | None, list[WordAlignment | None]]:
    """Read the alignments that a decoder printed.

    Args:
        path: its output, in subwords.
        scheme: how subwords are marked; None: find out.
        backward: the decoder translates from what we call target to what we call source.

    Returns:
        One per sentence, None where an unknown subword hides where words begin. Those of
        ``--print-layer-alignments`` come by layer and head, that of ``--print-alignment`` as None.

    Raises:
        DataError: the file cannot be understood, or a sentence has no links.
    """
    decoded = read_decoded(path)
    scheme = scheme or detect_scheme(text for s in decoded for text in (s.source, s.hypothesis))
    topics = {topic for sentence in decoded for topic in sentence.layer_links}
    chosen: list[LinksOf | None] = [*sorted(topics)]
    if not topics or any(sentence.links is not None for sentence in decoded):
        chosen.insert(0, None)
    found: dict[LinksOf | None, list[WordAlignment | None]] = {layer: [] for layer in chosen}
    for number, sentence in enumerate(decoded, 1):
        for topic, alignments in found.items():
            if topic is not None:
                sentence = replace(sentence, links=sentence.layer_links.get(topic))
            try:
                alignment = word_alignment(sentence, scheme)
            except DataError as error:
                raise DataError(f"{path}: sentence {number}: {error}") from None
            alignments.append(alignment.reversed() if alignment and backward else alignment)
    return found


def common_sentences(
    outputs: Mapping[str, Sequence[WordAlignment | None]],
) -> dict[int, list[WordAlignment]]:
    """Keep the sentences that have an alignment in every output.

    Args:
        outputs: at least one, by what to call it in errors.

    Returns:
        For each sentence, counted from 0, its alignment in each output.

    Raises:
        DataError: the outputs are not of the same sentences, or nothing is left.
    """
    (first, wanted), *_ = outputs.items()
    for name, found in outputs.items():
        if len(found) != len(wanted):
            raise DataError(f"{name}: {len(found)} sentences, but {len(wanted)} in {first}")
    common: dict[int, list[WordAlignment]] = {}
    for index, row in enumerate(zip(*outputs.values(), strict=True)):
        known = {name: alignment for name, alignment in zip(outputs, row, strict=True) if alignment}
        for name, alignment in known.items():
            other = next(iter(known))
            if alignment.words != known[other].words:
                raise DataError(
                    f"{name}: sentence {index + 1}: {alignment.words} source and target words, but "
                    f"{known[other].words} in {other}; give outputs of the same sentences, and "
                    "those from target to source as --backward"
                )
        if len(known) == len(outputs):
            common[index] = list(known.values())
    if not common:
        raise DataError("no sentence is left: an unknown subword hides the words of each")
    return common
