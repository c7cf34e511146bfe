"""What models do in every format: split text, make batches, put results in order."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from ..base.errors import DataError
from ..data.segmenters import Segmenter
from .answers import Alignment, Distances, Pair, Parse, Sentence, Translation

NO_PARSER = (
    "the model reads the parse of its source; name a parser, as in source_parser='stanza:en' "
    "(--source-parser stanza:en)"
)

logger = logging.getLogger(__name__)


#: The most subwords of a translation, unless a model has fewer positions or its user says less.
MAX_LEN = 1000


class Model(ABC):
    """A translation model, with the subwords that it reads and writes.

    Text is as people write it if the model's folder says how its training text was prepared;
    otherwise, it is words separated by spaces, tokenised like that. Empty sentences stay empty.

    Args:
        segmenters: for source and target.

    Attributes:
        beam: size of the beam.
        batch_size: how many sentences are decoded together.
        length_penalty: the power of its length by which a hypothesis's log-probability is divided;
            above 1 favours longer ones.
        max_len: the most subwords of a translation; fewer if the model has fewer positions.
        tokenised: whether text, in and out, is words separated by spaces.
    """

    def __init__(self, segmenters: tuple[Segmenter, Segmenter]) -> None:
        self.source_segmenter, self.target_segmenter = segmenters
        self.beam = 5
        self.batch_size = 32
        self.length_penalty = 1.0
        self.max_len = MAX_LEN
        self.tokenised = any(segmenter.preparation is None for segmenter in segmenters)

    def translate(self, sentences: Sequence[str], warn: bool = True) -> list[Translation]:
        """Translate sentences, in order.

        Args:
            sentences: the sources.
            warn: log what `list_warnings` returns.

        Raises:
            DataError: a sentence is too long, or the model needs parses but has no parser.
        """
        sources = self._sources(_texts(sentences, "sentences"))
        translations = [Translation(Sentence([], self.target_segmenter.scheme)) for _ in sources]
        for indices in self._batches(sources):
            hypotheses = self._translate([sources[i] for i in indices])
            for index, translation in zip(indices, hypotheses, strict=True):
                translations[index] = translation
        if not self.tokenised:
            texts = self.target_segmenter.detokenise([str(t.sentence) for t in translations])
            translations = [*map(Translation.write, translations, texts)]
        for warning, indices in self.list_warnings(translations).items() if warn else ():
            count = f"{len(indices)} of {len(sources)} sentences, this is the first"
            logger.warning(f"sentence {indices[0] + 1}: {warning}: {count}")
        return translations

    def list_warnings(self, translations: Sequence[Translation]) -> dict[str, list[int]]:
        """Return what may be wrong with translations, and the indices of those with that fault."""
        warnings = {
            f"the search came to {self._most} subwords (--max-len); it may be cut": "cut",
            "translated without the parse that the model reads": "unparsed",
        }
        return {
            warning: indices
            for warning, name in warnings.items()
            if (indices := [i for i, each in enumerate(translations) if getattr(each, name)])
        }

    def find_long(self, sentences: Sequence[str]) -> dict[int, str]:
        """Return the indices of sentences that the model cannot read, and why, in a line."""
        return self._find_long(self._segment(_texts(sentences, "sentences")))

    def _find_long(self, sources: Sequence[Sentence]) -> dict[int, str]:
        longest = self.longest[0]
        return {
            index: f"{len(source.pieces)} subwords, but the model reads at most {longest}"
            for index, source in enumerate(sources)
            if len(source.pieces) > longest
        }

    @property
    def _most(self) -> int:
        """How many subwords a translation may have."""
        if not isinstance(self.max_len, int) or self.max_len < 1:
            raise DataError(f"max_len {self.max_len!r}: give a whole number from 1")
        return min(self.max_len, self.longest[1])

    def parse(
        self, sentences: Sequence[str], translations: Sequence[str] | None = None
    ) -> list[Pair[Parse]]:
        """Parse sources and translations with the dependency heads.

        Args:
            sentences: the sources.
            translations: one for each source; None: the model's own.

        Raises:
            DataError: the model has no dependency heads; also as in `translate`.
        """
        raise DataError(f"{self.name}: the dependency heads of this model, if any, cannot be read")

    def align(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        layer: int | None = None,
        head: int | None = None,
    ) -> list[Alignment]:
        """Show what each word of the translations attends to in the source.

        Args:
            sentences: the sources.
            translations: one for each source; None: the model's own.
            layer: decoder layer, from 1; None: the one that the model aligns with.
            head: one of the layer's heads, from 1; None: their mean.

        Raises:
            DataError: there is no such layer or head; also as in `translate`.
        """
        raise DataError(f"{self.name}: this model shows no alignments")

    def distances(
        self, sentences: Sequence[str], translations: Sequence[str] | None = None
    ) -> list[Pair[Distances]]:
        """Return the syntactic distances that the gated heads of an LPSI model measure.

        Args:
            sentences: the sources.
            translations: one for each source; None: the model's own.

        Raises:
            DataError: the model measures none; also as in `translate`.
        """
        raise DataError(f"{self.name}: this model measures no syntactic distances")

    @property
    @abstractmethod
    def name(self) -> str:
        """The model's name in errors: where it was loaded from."""

    @property
    @abstractmethod
    def languages(self) -> tuple[str, str]:
        """Source and target language, such as ``("en", "de")``."""

    @property
    @abstractmethod
    def longest(self) -> tuple[int, int]:
        """The most subwords that the model can read in a source, and write in a translation."""

    @abstractmethod
    def _translate(self, sources: Sequence[Sentence]) -> list[Translation]:
        """Translate one batch."""

    def _sources(self, sentences: Sequence[str]) -> list[Sentence]:
        """Split sentences into subwords.

        Raises:
            DataError: one has more than the model reads.
        """
        sources = self._segment(sentences)
        for index, reason in self._find_long(sources).items():
            beginning = f"{str(sources[index])[:60]!r}..."
            raise DataError(f"sentence {index + 1}: {reason}; split it: {beginning}")
        return sources

    def _segment(self, sentences: Sequence[str]) -> list[Sentence]:
        return self._cut(self.source_segmenter, sentences)

    def _cut(self, segmenter: Segmenter, sentences: Sequence[str]) -> list[Sentence]:
        lines = sentences if self.tokenised else segmenter.tokenise(sentences)
        return [Sentence(pieces, segmenter.scheme) for pieces in segmenter(lines)]

    def _pairs(
        self, sentences: Sequence[str], translations: Sequence[str] | None
    ) -> list[tuple[Sentence, Translation]]:
        """Split sources and translations into subwords; translate if there are no translations."""
        sentences = _texts(sentences, "sentences")
        sources = self._sources(sentences)
        if translations is None:
            return [*zip(sources, self.translate(sentences), strict=True)]
        translations = _texts(translations, "translations")
        if len(translations) != len(sources):
            raise DataError(f"{len(translations)} translations for {len(sources)} sentences")
        given = [line for line in translations if not isinstance(line, Translation)]
        cut = map(Translation, self._cut(self.target_segmenter, given))
        known = [x if isinstance(x, Translation) else next(cut).write(x) for x in translations]
        return [*zip(sources, known, strict=True)]

    def _batches(self, sources: Sequence[Sentence]) -> Iterator[list[int]]:
        """Yield batches of indices of similarly long, non-empty sentences, longest first.

        Raises:
            DataError: the size of the batch or of the beam is not a whole number from 1.
        """
        for name in ("batch_size", "beam"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise DataError(f"{name} {value!r}: give a whole number from 1")
        lengths = np.array([len(source.pieces) for source in sources], dtype=int)
        order = [int(i) for i in np.argsort(-lengths, kind="stable") if lengths[i]]
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]


def _texts(lines: Sequence[str], what: str) -> list[str]:
    """Return a list of strings.

    Raises:
        TypeError: it is one string, or has other things.
    """
    if isinstance(lines, str):
        raise TypeError(f"expected a list of {what}, got one string")
    texts = list(lines)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"expected a list of {what}, got {text!r} in it")
    return texts
