"""Word alignments printed by models or other programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.packed import Packed
from syncattn_fairseq.data.words import Link

from ..printed.output import has_analyses, read_output
from ..printed.sentences import PrintedSentence
from .alignment import read_alignments
from .gold_words import GoldWords, move_links


@dataclass(frozen=True)
class WordAlignment:
    """The word links of a sentence, and the numbers of source and target words."""

    links: set[Link]
    words: tuple[int, int] | None = None
    """Numbers of the source's and of the target's words; None if unknown."""

    def reversed(self) -> WordAlignment:
        """Return the alignment with source and target swapped."""
        return WordAlignment({(i, j) for j, i in self.links}, self.words and self.words[::-1])

    def check_gold(self, gold: Iterable[Link]) -> None:
        """Raise `DataError` if a gold link refers to a word beyond the end of the sentence."""
        if outside := self._find_outside(gold):
            raise DataError(f"gold {outside}; a file that counts from 1 needs --one-based")

    def check_same_sentence(self, other: WordAlignment) -> None:
        """Raise `DataError` if another alignment cannot be of the same sentence.

        It has other numbers of words, or a link to a word beyond the end.
        """
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
    sentence: PrintedSentence,
    layer: tuple[int, int] | None = None,
    source_words: int | None = None,
    target_words: int | None = None,
) -> WordAlignment | None:
    """Return the word links printed by a model for a sentence.

    Args:
        sentence: as it was printed.
        layer: the decoder layer of the links, and its head; None: those that the model aligns with.
        source_words: how many words the source has, if that is known.
        target_words: how many the target has, if that is known.

    Returns:
        The alignment; None if an unknown subword hides where words begin.

    Raises:
        DataError: there are no such links.
    """
    links = sentence.links if layer is None else sentence.layer_links.get(layer)
    if links is None:
        raise DataError(
            "the output has no links; print links with syncattn-translate --jsonl --force "
            "REFERENCES, or fairseq-generate --score-reference --print-alignment"
        )
    source, target = sentence.source, sentence.target
    if source.lacks_words(source_words) or target.lacks_words(target_words):
        return None
    return WordAlignment(links, (len(source.words), len(target.words)))


def read_word_alignments(
    path: str | Path,
    scheme: str | None = None,
    backward: bool = False,
    words: tuple[Sequence[GoldWords], Sequence[GoldWords]] | None = None,
) -> dict[tuple[int, int] | None, Packed[WordAlignment | None]]:
    """Read word alignments from the output of a model, or from a Pharaoh file (``0-0 1-2``).

    Args:
        path: what ``syncattn-translate --jsonl`` or fairseq printed; or links of words,
            source-target and from 0, a line for each sentence, as fast_align writes them in both
            directions.
        scheme: how fairseq's subwords are marked; None: detect it.
        backward: the model translates from our target to our source.
        words: those that links are counted by, of our source and our target; None: those that were
            printed. Links of a Pharaoh file are of these words already.

    Returns:
        An alignment per sentence, None if an unknown subword hides where words begin; by the
        decoder layer and head of links, or None for those that the model aligns with.

    Raises:
        DataError: the file cannot be read, or a sentence has no links.
    """
    if not has_analyses(path):
        sure, possible = read_alignments(path)
        both = zip(sure, possible, strict=True)
        return {None: Packed(WordAlignment(one | other) for one, other in both)}
    printed = read_output(path, scheme)
    if words is not None:
        printed = _move_links(path, printed, words[::-1] if backward else words)
    layers = {layer for sentence in printed for layer in sentence.layer_links}
    chosen: list[tuple[int, int] | None] = [*sorted(layers)]
    if not layers or any(sentence.links is not None for sentence in printed):
        chosen.insert(0, None)
    by_layer: dict[tuple[int, int] | None, Packed[WordAlignment | None]] = {
        layer: Packed() for layer in chosen
    }
    for number, sentence in enumerate(printed, 1):
        for layer, alignments in by_layer.items():
            with naming(f"{path}: sentence {number}"):
                alignment = align_words(sentence, layer)
            alignments.append(alignment.reversed() if alignment and backward else alignment)
    return by_layer


def _move_links(
    path: str | Path,
    printed: Sequence[PrintedSentence],
    words: Sequence[Sequence[GoldWords]],
) -> Sequence[PrintedSentence]:
    """Return sentences with links of other words."""
    for text in words:
        if len(text) != len(printed):
            raise DataError(f"{path}: has {len(printed)} sentences, but the text has {len(text)}")
    moved: Packed[PrintedSentence] = Packed()
    for number, (sentence, *sides) in enumerate(zip(printed, *words, strict=True), 1):
        with naming(f"{path}: sentence {number}"):
            moved.append(move_links(sentence, *sides))
    return moved


def pair_sentences(
    outputs: Mapping[str, Sequence[WordAlignment | None]],
) -> Iterator[list[WordAlignment] | None]:
    """Yield all outputs' alignments of each sentence; None if an output lacks the alignment.

    Raises `DataError` if the outputs are of different sentences.
    """
    (first, expected), *_ = outputs.items()
    for name, alignments in outputs.items():
        if len(alignments) != len(expected):
            raise DataError(
                f"{name}: has {len(alignments)} sentences, but {first} has {len(expected)}"
            )
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
                    "sentences, those of target-to-source models with --backward"
                ) from None
        left += len(known) == len(outputs)
        yield list(known.values()) if len(known) == len(outputs) else None
    if not left:
        raise DataError(
            "no sentence is left: each has an unknown subword, so that its words are unknown"
        )
