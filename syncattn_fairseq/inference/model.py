"""What models do in every format: split text, make batches, put results in order."""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from threading import Lock, RLock
from typing import Any, TypeAlias

import numpy as np

from .. import __version__
from ..base.errors import DataError, naming
from ..data.parses import check_tree
from ..data.segmenters import Segmenter
from ..parsing.formats import FORMATS
from ..parsing.parser import Parse as DependencyTree
from .answers import Alignment, Distances, Pair, Parse, Sentence, Translation

NO_PARSER = (
    "the model reads the parse of its source; name a parser, as in source_parser='stanza:en' "
    "(--source-parser stanza:en)"
)

logger = logging.getLogger(__name__)


Heads: TypeAlias = str | Sequence[Sequence[int] | None] | None
"""Parses of sentences: CoNLL-U, or the heads of each one's words, None for no parse."""

#: What may be wrong with a translation.
FAULTS = ("cut", "unparsed", "too_long")

#: The most subwords of a translation, and of a short source's, unless its user says another number.
MAX_LEN, SHORT = 1000, 200


@dataclass(eq=False)
class _Job:
    """A source that waits, and its translation or what went wrong."""

    source: Sentence
    most: int
    translation: Translation | None = None
    error: BaseException | None = None


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
        max_len: the most subwords of a translation, if the model has positions for as many; None:
            200 or, of a source of more than 32, from 4 to 8 times as many as it has, up to 1000.
        max_source: the most subwords of a source; None: as many as the model has positions for.
        too_long: with a source of more, ``stop``, or leave its translation ``empty`` and warn.
        tokenised: whether text, in and out, is words separated by spaces.
    """

    def __init__(self, segmenters: tuple[Segmenter, Segmenter]) -> None:
        self.source_segmenter, self.target_segmenter = segmenters
        self.beam = 5
        self.batch_size = 32
        self.length_penalty = 1.0
        self.max_len: int | None = None
        self.max_source: int | None = None
        self.too_long = "stop"
        #: Only one thread at a time uses the model.
        self.lock = RLock()
        self._waiting: deque[_Job] = deque()
        self._waiting_lock = Lock()
        self.tokenised = any(segmenter.preparation is None for segmenter in segmenters)

    def translate(
        self, sentences: Sequence[str], warn: bool = True, heads: Heads = None
    ) -> list[Translation]:
        """Translate sentences, in order; calls from several threads share batches.

        Args:
            sentences: the sources.
            warn: log what `list_warnings` returns.
            heads: the sources' parses, for models that read one: the heads of each one's words
                (from 1, 0 for the root; None: no parse), or CoNLL-U; None: of the model's parser.

        Raises:
            DataError: a sentence is too long, a parse does not fit, or the model needs parses but
                has no parser.
        """
        sources = self._sources(_texts(sentences, "sentences"), heads, self.too_long == "empty")
        too_long = self._find_long(sources)
        kept = [Sentence([], x.scheme) if i in too_long else x for i, x in enumerate(sources)]
        translations = self._decode(kept)
        for index, reason in too_long.items():
            translations[index].too_long = reason
        if not self.tokenised:
            texts = self.target_segmenter.detokenise([str(t.sentence) for t in translations])
            translations = [*map(Translation.write, translations, texts)]
        for warning, indices in self.list_warnings(translations).items() if warn else ():
            count = f"{len(indices)} of {len(sources)} sentences, this is the first"
            logger.warning(f"sentence {indices[0] + 1}: {warning}: {count}")
        return translations

    def _decode(self, sources: Sequence[Sentence]) -> list[Translation]:
        """Translate in batches; whoever holds the lock decodes for all that wait, in order."""
        order = [index for indices in self._batches(sources) for index in indices]
        jobs = [_Job(sources[index], self._most(sources[index])) for index in order]
        with self._waiting_lock:
            self._waiting += jobs
        try:
            for job in jobs:
                while job.translation is None and job.error is None:
                    with self.lock:
                        if job.translation is None and job.error is None:
                            self._decode_next()
                if job.error is not None:
                    raise job.error
        finally:
            if any(job.translation is None for job in jobs):  # the others are not wanted any more
                with self._waiting_lock:
                    ours = {*jobs}
                    self._waiting = deque(job for job in self._waiting if job not in ours)
        scheme = self.target_segmenter.scheme
        translations = [Translation(Sentence([], scheme)) for _ in sources]
        for index, job in zip(order, jobs, strict=True):
            assert job.translation is not None
            translations[index] = job.translation
        return translations

    def _decode_next(self) -> None:
        with self._waiting_lock:
            most = self._waiting[0].most
            batch = [*islice((x for x in self._waiting if x.most == most), self.batch_size)]
            for job in batch:
                self._waiting.remove(job)
        try:
            found = self._translate([job.source for job in batch])
            for job, translation in zip(batch, found, strict=True):
                job.translation = translation
        except BaseException as error:
            for job in batch:
                job.error = error
            if not isinstance(error, Exception):
                raise

    def list_warnings(
        self, translations: Sequence[Translation], faults: Collection[str] = FAULTS
    ) -> dict[str, list[int]]:
        """Return which of the faults translations have, and the indices of those that have it."""
        warnings = {
            "the search came to as many subwords as it may (--max-len); it may be cut": "cut",
            "translated without the parse that the model reads": "unparsed",
            f"not translated: more than {self._longest_source} subwords": "too_long",
        }
        return {
            warning: indices
            for warning, name in warnings.items()
            if name in faults
            and (indices := [i for i, each in enumerate(translations) if getattr(each, name)])
        }

    def info(self) -> dict[str, Any]:
        """Return what a service says about its model, as plain values."""
        source, target = self.languages
        return {
            "version": __version__,
            "source": source,
            "target": target,
            "text": "words separated by spaces" if self.tokenised else "sentences",
            "reads": sorted(self.reads),
            "longest_source": self._longest_source,
            "longest_translation": min(self.max_len or MAX_LEN, self.longest[1]),
        }

    def _find_long(self, sources: Sequence[Sentence]) -> dict[int, str]:
        """Return the indices of sources that are not read, and why, in a line."""
        longest = self._longest_source
        return {
            index: f"{len(source.pieces)} subwords, but the model reads at most {longest}"
            for index, source in enumerate(sources)
            if len(source.pieces) > longest
        }

    @property
    def _longest_source(self) -> int:
        return min(self.max_source or self.longest[0], self.longest[0])

    def _most(self, source: Sentence) -> int:
        """Return how many subwords its translation may have: few numbers, as a batch has one."""
        grown = min(max(SHORT, 4 << (len(source.pieces) - 1).bit_length()), MAX_LEN)
        return min(self.max_len or grown, self.longest[1])

    def parse(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        heads: Heads = None,
    ) -> list[Pair[Parse]]:
        """Parse sources and translations with the dependency heads.

        Args:
            sentences: the sources.
            translations: one for each source; None: the model's own.
            heads: as in `translate`.

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
        heads: Heads = None,
    ) -> list[Alignment]:
        """Show what each word of the translations attends to in the source.

        Args:
            sentences: the sources.
            translations: one for each source; None: the model's own.
            layer: decoder layer, from 1; None: the one that the model aligns with.
            head: one of the layer's heads, from 1; None: their mean.
            heads: as in `translate`.

        Raises:
            DataError: there is no such layer or head; also as in `translate`.
        """
        raise DataError(f"{self.name}: this model shows no alignments")

    def distances(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        heads: Heads = None,
    ) -> list[Pair[Distances]]:
        """Return the syntactic distances that the gated heads of an LPSI model measure.

        Args:
            sentences: the sources.
            translations: one for each source; None: the model's own.
            heads: as in `translate`.

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

    @property
    def reads(self) -> frozenset[str]:
        """What it reads of the source's parse: ``heads``, ``labels``, both or nothing."""
        return frozenset()

    #: Parses words for models that read it; None: there is no parser.
    parser: Any = None

    @abstractmethod
    def _translate(self, sources: Sequence[Sentence]) -> list[Translation]:
        """Translate one batch."""

    def _sources(
        self, sentences: Sequence[str], heads: Heads = None, too_long: bool = False
    ) -> list[Sentence]:
        """Split sentences into subwords, and add the parses that are given.

        Raises:
            DataError: one has more subwords than the model reads, unless it may be ``too_long``; or
                a parse does not fit.
        """
        sources = self._cut(self.source_segmenter, sentences)
        for index, reason in {} if too_long else self._find_long(sources).items():
            beginning = f"{str(sources[index])[:60]!r}..."
            raise DataError(f"sentence {index + 1}: {reason}; split it: {beginning}")
        if heads is None:
            if self.reads and self.parser is None:
                raise DataError(f"{self.name}: {NO_PARSER}")
            return sources
        if not self.reads:
            raise DataError(f"{self.name}: the model reads no parse of its source; give no heads")
        trees = _read_trees(heads)
        if len(trees) != len(sources):
            raise DataError(f"{len(trees)} parses for {len(sources)} sentences")
        for number, (tree, source) in enumerate(zip(trees, sources, strict=True), 1):
            with naming(f"sentence {number}"):
                _check_tree(tree, source, self.reads)
        return [replace(x, given=tree) for x, tree in zip(sources, trees, strict=True)]

    def _list_trees(self, sources: Sequence[Sentence]) -> list[DependencyTree | None]:
        """Return the trees that are given, and those that the parser finds of the others."""
        trees = [source.given for source in sources]
        others = [source.words for source in sources if source.given is None]
        parsed = iter(self.parser(others) if self.parser and others else [None] * len(others))
        return [next(parsed) if tree is None else tree for tree in trees]

    def _cut(self, segmenter: Segmenter, sentences: Sequence[str]) -> list[Sentence]:
        lines = sentences if self.tokenised else segmenter.tokenise(sentences)
        return [Sentence(pieces, segmenter.scheme) for pieces in segmenter(lines)]

    def _pairs(
        self, sentences: Sequence[str], translations: Sequence[str] | None, heads: Heads = None
    ) -> list[tuple[Sentence, Translation]]:
        """Split sources and translations into subwords; translate if there are no translations."""
        sentences = _texts(sentences, "sentences")
        sources = self._sources(sentences, heads)
        if translations is None:
            return [*zip(sources, self.translate(sentences, heads=heads), strict=True)]
        translations = _texts(translations, "translations")
        if len(translations) != len(sources):
            raise DataError(f"{len(translations)} translations for {len(sources)} sentences")
        given = [line for line in translations if not isinstance(line, Translation)]
        cut = map(Translation, self._cut(self.target_segmenter, given))
        known = [x if isinstance(x, Translation) else next(cut).write(x) for x in translations]
        return [*zip(sources, known, strict=True)]

    def _batches(self, sources: Sequence[Sentence]) -> Iterator[list[int]]:
        """Yield batches of indices of similarly long, non-empty sentences, longest first."""
        for name in ("batch_size", "beam", "max_len"):
            value = getattr(self, name)
            if name == "max_len" and value is None:  # it grows with the source
                continue
            if not isinstance(value, int) or value < 1:
                raise DataError(f"{name} {value!r}: give a whole number from 1")
        lengths = np.array([len(source.pieces) for source in sources], dtype=int)
        order = [int(i) for i in np.argsort(-lengths, kind="stable") if lengths[i]]
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]


def unaligned(source: Sentence, target: Translation) -> Alignment:
    """Return the alignment of a sentence of which nothing is read."""
    shape = len(target.sentence.pieces), len(source.pieces)
    return Alignment(source, target.sentence, np.zeros(shape))


def _texts(lines: Sequence[str], what: str) -> list[str]:
    """Return a list of strings; `TypeError`: it is one string, or has other things."""
    if isinstance(lines, str):
        raise TypeError(f"expected a list of {what}, got one string")
    texts = list(lines)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"expected a list of {what}, got {text!r} in it")
    return texts


def _read_trees(heads: str | Sequence[Sequence[int] | None]) -> list[DependencyTree | None]:
    if isinstance(heads, str):
        read = FORMATS["conllu"](heads.split("\n"), "heads")
        return [None if x.heads is None else DependencyTree(x.heads, x.labels) for x in read]
    return [None if row is None else DependencyTree([*row], []) for row in heads]


def _check_tree(tree: DependencyTree | None, source: Sentence, reads: frozenset[str]) -> None:
    """Check that a tree is one over the source's words, with labels if the model reads them."""
    if tree is None:
        return
    if len(tree.heads) != len(source.words):
        raise DataError(f"{len(tree.heads)} heads for {len(source.words)} words")
    if "labels" in reads and not tree.labels:
        raise DataError("the model reads labels, too; give the parses as CoNLL-U")
    if tree.heads:
        check_tree(tree.heads)
