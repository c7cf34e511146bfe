"""What all models do, whatever runs them: cut text, make batches, put results in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from ..base.errors import DataError
from .analysis import Alignment, Distances, Pair, Parse, Sentence, Translation
from .subwords import Cutter


class Model(ABC):
    """A translation model, with the subwords that it reads and writes.

    Text goes in as the model was trained on it, words separated by spaces, one string for each
    sentence; empty ones come out empty.

    Args:
        cutters: of source and target.

    Attributes:
        beam: size of the beam.
        batch_size: sentences that are decoded together.
        length_penalty: a hypothesis's log-probability is divided by its length to the power of
            this; above 1, longer ones are preferred.
    """

    def __init__(self, cutters: tuple[Cutter, Cutter]) -> None:
        self.source_cutter, self.target_cutter = cutters
        self.beam = 5
        self.batch_size = 32
        self.length_penalty = 1.0

    def translate(self, sentences: Sequence[str]) -> list[Translation]:
        """Translate sentences, in order.

        Raises:
            DataError: a sentence is too long, or the model reads parses and has no parser.
        """
        sources = self._sources(sentences)
        found = [Translation(Sentence([], self.target_cutter.scheme)) for _ in sources]
        for indices in self._batches(sources):
            hypotheses = self._translate([sources[i] for i in indices])
            for index, translation in zip(indices, hypotheses, strict=True):
                found[index] = translation
        return found

    def parse(
        self, sentences: Sequence[str], translations: Sequence[str] | None = None
    ) -> list[Pair[Parse]]:
        """Say how the dependency heads parse sources and translations.

        Args:
            sentences: the sources.
            translations: of each; those that the model finds itself where they are left out.

        Raises:
            DataError: the model has no dependency heads, or as `translate`.
        """
        raise DataError(f"{self.name}: it has no dependency heads that could be read here")

    def align(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        layer: int | None = None,
        head: int | None = None,
    ) -> list[Alignment]:
        """Say what each word of the translations attends to in the source.

        Args:
            sentences: the sources.
            translations: of each; those that the model finds itself where they are left out.
            layer: of the decoder, from 1; None: the one that the model aligns with.
            head: of the layer, from 1; None: the mean of its heads.

        Raises:
            DataError: there is no such layer or head, or as `translate`.
        """
        raise DataError(f"{self.name}: it shows no alignments")

    def distances(
        self, sentences: Sequence[str], translations: Sequence[str] | None = None
    ) -> list[Pair[Distances]]:
        """Say what syntactic distances the gated heads of an LPSI model measure.

        Args:
            sentences: the sources.
            translations: of each; those that the model finds itself where they are left out.

        Raises:
            DataError: the model measures none, or as `translate`.
        """
        raise DataError(f"{self.name}: it measures no syntactic distances")

    @property
    @abstractmethod
    def name(self) -> str:
        """What the model is called in errors: where it was loaded from."""

    @abstractmethod
    def _translate(self, sources: Sequence[Sentence]) -> list[Translation]:
        """Translate one batch."""

    def _sources(self, sentences: Sequence[str]) -> list[Sentence]:
        if isinstance(sentences, str):
            raise TypeError("expected a list of sentences, got one string")
        cutter = self.source_cutter
        return [Sentence(pieces, cutter.scheme) for pieces in cutter(sentences)]

    def _pairs(
        self, sentences: Sequence[str], translations: Sequence[str] | None
    ) -> list[tuple[Sentence, Translation]]:
        """Cut sources and translations, or find the latter."""
        sources = self._sources(sentences)
        if translations is None:
            return [*zip(sources, self.translate(sentences), strict=True)]
        if len(translations) != len(sources):
            raise DataError(f"{len(translations)} translations of {len(sources)} sentences")
        cutter = self.target_cutter
        known = [
            line
            if isinstance(line, Translation)  # as the model has cut it
            else Translation(Sentence(cutter([line])[0], cutter.scheme))
            for line in translations
        ]
        return [*zip(sources, known, strict=True)]

    def _batches(self, sources: Sequence[Sentence]) -> Iterator[list[int]]:
        """Yield the indices of sentences of like lengths, longest first, without the empty ones."""
        lengths = np.array([len(source.pieces) for source in sources], dtype=int)
        order = [int(i) for i in np.argsort(-lengths, kind="stable") if lengths[i]]
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]
