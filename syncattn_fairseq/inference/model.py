"""Work common to all models: splitting text, batching, and ordering the results."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import numpy as np

from .. import __version__
from ..base.errors import BadSentence, DataError
from ..data.segmenters import Segmenter, Subwords
from ..data.words import is_raw
from ..parsing.parser import Parse as DependencyTree
from ..parsing.subwords import parse_subwords
from .analysis import Analysis, Question
from .answers import Alignment, Distances, Pair, Parse, Sentence, Translation
from .attention_heads import AttentionHeads
from .decoding import DEFAULT, Decoding
from .shared_batches import Search, SharedBatches
from .sources import Parses, check_parse, place_parse, read_parses, read_texts

NO_PARSER = (
    "the model reads the parse of its source; name a parser, as in source_parser='stanza:en' "
    "(--source-parser stanza:en)"
)

logger = logging.getLogger(__name__)

#: The possible faults of a translation, and the warning about each.
FAULTS = {
    "cut": (
        "the search reached the largest number of subwords (--max-len), so the translation may "
        "be cut short"
    ),
    "unparsed": "translated without a parse, although the model reads parses",
    "too_long": "not translated: the sentence has more subwords than the model reads",
}

#: The error of a model on a GPU in a forked process.
FORKED = "a forked process cannot use its parent's GPU; load the model after the fork"

#: The default limit on the subwords of any translation, and on those of a short source's.
MAX_LEN, SHORT = 1000, 200


class Model(ABC):
    """A translation model with the subword models of source and target.

    Text is as people write it if the model's folder says how its training text was prepared.
    Otherwise, it is words separated by spaces, tokenised like the training text. Empty sentences
    stay empty. Several threads may call a model; their calls share batches. A process that was
    forked after the model was loaded may call it, too.

    Args:
        segmenters: what splits source and target into subwords.
        tokenised: whether text, in and out, is words separated by spaces even if the folder says
            how text was prepared.

    Attributes:
        tokenised: whether text, in and out, is words separated by spaces.
        shows: what `analyse` can return of the model, of ``parses``, ``links`` and ``distances``.
    """

    shows: frozenset[str] = frozenset()

    #: Parses words for models that read a parse of the source; None: there is no parser.
    parser: Any = None

    def __init__(self, segmenters: tuple[Segmenter, Segmenter], tokenised: bool = False) -> None:
        self.source_segmenter, self.target_segmenter = segmenters
        if tokenised and any(is_raw(segmenter.scheme) for segmenter in segmenters):
            raise DataError(
                "tokenised (--tokenised): the model reads raw sentences, not words; leave the "
                "option out"
            )
        #: The symbols that each side begins with, as they name its language; empty: none.
        self.first = tuple(
            [s.preparation.first] if s.preparation and s.preparation.first else []
            for s in segmenters
        )
        unknown = any(segmenter.preparation is None for segmenter in segmenters)
        self.tokenised = tokenised or unknown
        self._batches = SharedBatches(self._translate)
        self._is_forked = False
        _models.add(self)

    # ---- what a format knows of its model

    @property
    @abstractmethod
    def name(self) -> str:
        """The path the model was loaded from, as named in error messages."""

    @property
    @abstractmethod
    def languages(self) -> tuple[str, str]:
        """The source and the target language, such as ``("en", "de")``."""

    @property
    @abstractmethod
    def longest(self) -> tuple[int, int]:
        """The maximum numbers of subwords in a source and a translation."""

    @property
    def reads(self) -> frozenset[str]:
        """The parts of a source's parse read by the model, among ``heads`` and ``labels``."""
        return frozenset()

    @abstractmethod
    def _translate(self, sources: Sequence[Sentence], search: Search) -> list[Translation]:
        """Translate a batch of non-empty sources."""

    @abstractmethod
    def _analyse(
        self, pairs: Sequence[tuple[Sentence, Translation]], question: Question, batch_size: int
    ) -> list[Analysis]:
        """Return the analysis of each sentence pair, with the parts requested by the question."""

    def _check_heads(self) -> None:
        """Raise `DataError` if the model cannot show single attention heads.

        Raises:
            DataError: it cannot.
        """
        raise DataError(
            f"{self.name}: the model shows only the mean over a layer's heads; load the "
            "checkpoint that the export was made from"
        )

    def _note_fork(self) -> None:
        """Drop batches shared with the parent in a forked child, where the threads do not exist."""
        self._batches = SharedBatches(self._translate)
        self._is_forked = True

    @abstractmethod
    def _reopen(self) -> None:
        """Restart thread pools in a forked child, where the parent's threads do not exist.

        Raises:
            DataError: it cannot be used there.
        """

    # ---- what users ask

    def translate(
        self,
        sentences: Sequence[str],
        *,
        decoding: Decoding = DEFAULT,
        parses: Parses = None,
        warn: bool = True,
        seconds: float | None = None,
    ) -> list[Translation]:
        """Translate sentences, and return a translation for each, in the same order.

        Args:
            sentences: the sources.
            decoding: settings of the search.
            parses: the sources' parses, for models that read one: of each source the number of each
                word's parent (from 1, 0 for the root), or None without a parse; or all of them as
                CoNLL-U. None: those of the model's parser.
            warn: whether to log what `list_warnings` returns.
            seconds: time after which no further batch is begun. None: there is no hurry.

        Raises:
            DataError: a sentence is too long or not UTF-8, a parse does not fit, or the model reads
                parses but has no parser.
            TimeoutError: the time was over before all sentences were translated.
        """
        texts = read_texts(sentences, "sentences")
        sources = self._read_sources(texts, parses, decoding)
        too_long = self._find_long(sources, decoding)
        kept = [Sentence([], x.scheme) if i in too_long else x for i, x in enumerate(sources)]
        translations = self._search(kept, decoding, seconds)
        for index, reason in too_long.items():
            translations[index].too_long = reason
        if not self.tokenised:
            written = self.target_segmenter.detokenise([str(t.sentence) for t in translations])
            translations = [*map(Translation.write, translations, written)]
        if warn:
            self._log_warnings(translations)
        return translations

    def analyse(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        *,
        decoding: Decoding = DEFAULT,
        parses: Parses = None,
        head: int | None = None,
        every_layer: bool = False,
    ) -> list[Analysis]:
        """Return the score, parses, alignment and distances of each sentence pair.

        Args:
            sentences: the sources.
            translations: one for each source. None: the model's own.
            decoding: settings of the search, if the model translates, and the size of batches.
            parses: as in `translate`.
            head: the head of a decoder layer whose links are read, from 1. None: the mean of all.
            every_layer: read the links of each decoder layer, too.

        Raises:
            DataError: there is no such head; also as in `translate`.
        """
        question = Question(True, True, True, True, head=head, every_layer=every_layer)
        return self._ask(question, sentences, translations, decoding, parses)

    def score(
        self,
        sentences: Sequence[str],
        translations: Sequence[str],
        *,
        decoding: Decoding = DEFAULT,
        parses: Parses = None,
    ) -> list[float]:
        """Return the log-probability of each given translation, summed over its subwords.

        Args:
            sentences: the sources.
            translations: one for each source.
            decoding: as in `analyse`.
            parses: as in `translate`.

        Returns:
            Natural logarithms, summed over the translation's subwords and its end; the ``score`` of
            a translation is their mean. NaN for an empty source.

        Raises:
            DataError: as in `translate`.
        """
        given = [str(translation) for translation in translations]
        found = self._ask(Question(scores=True), sentences, given, decoding, parses)
        return [each.score * (len(each.translation.sentence.pieces) + 1) for each in found]

    def parse(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        *,
        decoding: Decoding = DEFAULT,
        parses: Parses = None,
    ) -> list[Pair[Parse]]:
        """Return the parses of sources and translations by the model's dependency heads.

        Args:
            sentences: the sources.
            translations: one for each source. None: the model's own.
            decoding: as in `analyse`.
            parses: as in `translate`.

        Raises:
            DataError: the model has no dependency heads; also as in `translate`.
        """
        self._require("parses", "has no dependency heads")
        found = self._ask(Question(parses=True), sentences, translations, decoding, parses)
        return [Pair(x.translation, x.source_parse, x.target_parse) for x in found]

    def align(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        *,
        layer: int | None = None,
        head: int | None = None,
        decoding: Decoding = DEFAULT,
        parses: Parses = None,
    ) -> list[Alignment]:
        """Return the word alignment of each sentence pair, from the decoder's cross-attention.

        Args:
            sentences: the sources.
            translations: one for each source. None: the model's own.
            layer: decoder layer, from 1. None: the one that the model aligns with.
            head: one of the layer's heads, from 1. None: their mean.
            decoding: as in `analyse`.
            parses: as in `translate`.

        Raises:
            DataError: there is no such layer or head; also as in `translate`.
        """
        self._require("links", "shows no alignments")
        question = Question(links=True, layer=layer, head=head)
        found = self._ask(question, sentences, translations, decoding, parses)
        return [each.alignment for each in found if each.alignment is not None]

    def distances(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        *,
        decoding: Decoding = DEFAULT,
        parses: Parses = None,
    ) -> list[Pair[Distances]]:
        """Return the syntactic distances measured by the gated heads of an LPSI model.

        Args:
            sentences: the sources.
            translations: one for each source. None: the model's own.
            decoding: as in `analyse`.
            parses: as in `translate`.

        Raises:
            DataError: the model measures none; also as in `translate`.
        """
        self._require("distances", "measures no syntactic distances")
        found = self._ask(Question(distances=True), sentences, translations, decoding, parses)
        return [Pair(x.translation, x.source_distances, x.target_distances) for x in found]

    def heads(
        self,
        sentences: Sequence[str],
        translations: Sequence[str] | None = None,
        *,
        decoding: Decoding = DEFAULT,
        parses: Parses = None,
    ) -> list[AttentionHeads]:
        """Return the attention weights of every head of every layer, for each sentence pair.

        Args:
            sentences: the sources.
            translations: one for each source. None: the model's own.
            decoding: as in `analyse`.
            parses: as in `translate`.

        Raises:
            DataError: the heads cannot be seen, as those of an ensemble or of an export for
                CTranslate2; also as in `translate`.
        """
        self._check_heads()
        found = self._ask(Question(heads=True), sentences, translations, decoding, parses)
        return [each.heads for each in found if each.heads is not None]

    def list_warnings(
        self, translations: Sequence[Translation], faults: Collection[str] = tuple(FAULTS)
    ) -> dict[str, list[int]]:
        """Return warnings about translations, each with the indices of the translations at fault.

        Args:
            translations: what `translate` returned.
            faults: the names of the faults that are looked for, of `FAULTS`.

        Returns:
            For each fault that occurs, its description, and the indices of the translations.
        """
        warnings = {}
        for name, warning in FAULTS.items():
            indices = [i for i, each in enumerate(translations) if getattr(each, name)]
            if name in faults and indices:
                warnings[warning] = indices
        return warnings

    def describe_faults(self, translation: Translation) -> str:
        """Return a translation's possible faults as text, or an empty text without faults.

        Args:
            translation: what `translate` returned.
        """
        faults = [*self.list_warnings([translation], ("cut", "unparsed"))]
        return "; ".join([*faults, *filter(None, [translation.too_long])])

    def info(self, decoding: Decoding = DEFAULT) -> dict[str, Any]:
        """Return facts about the model, such as languages and limits, as values for JSON.

        Args:
            decoding: the settings that the service uses.
        """
        source, target = self.languages
        return {
            "version": __version__,
            "source": source,
            "target": target,
            "text": "words separated by spaces" if self.tokenised else "sentences",
            "reads": sorted(self.reads),
            "shows": sorted(self.shows),
            "longest_source": self._find_longest_source(decoding),
            "longest_translation": min(decoding.max_len or MAX_LEN, self.longest[1]),
        }

    # ---- how

    def _require(self, what: str, lack: str) -> None:
        if what not in self.shows:
            raise DataError(f"{self.name}: the model {lack}")

    def _ask(
        self,
        question: Question,
        sentences: Sequence[str],
        translations: Sequence[str] | None,
        decoding: Decoding,
        parses: Parses,
    ) -> list[Analysis]:
        """Split sources and translations into subwords, and answer a question about them."""
        if any(self.first):
            raise DataError(
                f"{self.name}: the model reads a token for the language first; such models can "
                "only translate"
            )
        texts = read_texts(sentences, "sentences")
        sources = self._read_sources(texts, parses, decoding)
        if translations is None:
            given: Sequence[str] = self.translate(texts, decoding=decoding, parses=parses)
        else:
            given = read_texts(translations, "translations")
        known = self._read_translations(given, len(sources), decoding)
        too_long = self._find_long(sources, decoding)
        pairs = []
        for index, (source, translation) in enumerate(zip(sources, known, strict=True)):
            if index in too_long or translation.too_long:
                translation.too_long = too_long.get(index, translation.too_long)
                source = Sentence([], source.scheme)
            pairs.append((source, translation))
        found = self._analyse(pairs, question, decoding.batch_size)
        if isinstance(self.source_segmenter, Subwords):
            texts = [str(analysis.source) for analysis in found]
        return [
            replace(analysis, text=text, forced=not isinstance(translation, Translation))
            for analysis, text, translation in zip(found, texts, given, strict=True)
        ]

    def _read_sources(
        self, sentences: Sequence[str], parses: Parses, decoding: Decoding
    ) -> list[Sentence]:
        """Split sentences into subwords, and add the given parses.

        Every question begins here, and so here a forked child finds out that it is one.

        Raises:
            DataError: one has more subwords than the model reads, and the search stops there; or a
                parse does not fit.
        """
        if self._is_forked:
            with self._batches.lock:
                if self._is_forked:
                    self._reopen()
                    self._is_forked = False
        sources = self._cut(self.source_segmenter, sentences)
        if decoding.too_long == "stop":
            for index, reason in self._find_long(sources, decoding).items():
                beginning = f"{str(sources[index])[:60]!r}..."
                raise DataError(f"sentence {index + 1}: {reason}; split the sentence: {beginning}")
        if parses is None:
            if self.reads and self.parser is None:
                raise DataError(f"{self.name}: {NO_PARSER}")
            return sources
        if not self.reads:
            raise DataError(
                f"{self.name}: the model does not read parses of the source; leave the parses out"
            )
        trees = read_parses(parses)
        if len(trees) != len(sources):
            raise DataError(
                f"{len(trees)} parses for {len(sources)} sentences; give one parse for each "
                "sentence"
            )
        given = []
        for number, (tree, source) in enumerate(zip(trees, sources, strict=True), 1):
            whole = isinstance(self.source_segmenter, Subwords)
            text = str(source) if whole else sentences[number - 1]
            try:
                given.append(place_parse(tree, source, text))
                check_parse(given[-1], source, self.reads)
            except DataError as fault:
                raise BadSentence(number, str(fault)) from None
        return [replace(x, given=tree) for x, tree in zip(sources, given, strict=True)]

    def _read_translations(
        self, translations: Sequence[str], count: int, decoding: Decoding
    ) -> list[Translation]:
        """Split translations into subwords, unless they are `Translation` objects.

        Raises:
            DataError: there are not as many as sources; or one has more subwords than the model
                writes, and the search stops there.
        """
        if len(translations) != count:
            raise DataError(
                f"{len(translations)} translations for {count} sentences; give one translation "
                "for each sentence"
            )
        given = [line for line in translations if not isinstance(line, Translation)]
        cut = iter(self._cut(self.target_segmenter, given))
        known = []
        for number, text in enumerate(translations, 1):
            if not isinstance(text, Translation):
                written = None if isinstance(self.target_segmenter, Subwords) else text
                text = Translation(next(cut), text=written)
                size, longest = len(text.sentence.pieces), self.longest[1]
                if size > longest:
                    text.too_long = f"{size} subwords, but the model writes at most {longest}"
                    if decoding.too_long == "stop":
                        raise DataError(
                            f"translation {number}: {text.too_long}; split the sentence"
                        )
            known.append(text)
        return known

    def _cut(self, segmenter: Segmenter, sentences: Sequence[str]) -> list[Sentence]:
        lines = sentences if self.tokenised else segmenter.tokenise(sentences)
        return [Sentence(pieces, segmenter.scheme) for pieces in segmenter(lines)]

    def _list_trees(self, sources: Sequence[Sentence]) -> list[DependencyTree | None]:
        """Return the given trees, and the parser's trees for sources without a given tree."""
        others = [source for source in sources if source.given is None]
        parsed = iter(
            parse_subwords(self.parser, [source.pieces for source in others], others[0].scheme)
            if self.parser and others
            else [None] * len(others)
        )
        return [next(parsed) if source.given is None else source.given for source in sources]

    def _search(
        self, sources: Sequence[Sentence], decoding: Decoding, seconds: float | None
    ) -> list[Translation]:
        """Translate the sources with subwords, in batches of similar length."""
        order = [i for indices in make_batches(sources, decoding.batch_size) for i in indices]
        searches = [Search(decoding, self._limit(sources[i], decoding)) for i in order]
        found = self._batches.run([sources[i] for i in order], searches, seconds)
        scheme = self.target_segmenter.scheme
        translations = [Translation(Sentence([], scheme)) for _ in sources]
        for index, translation in zip(order, found, strict=True):
            translations[index] = translation
        return translations

    def _limit(self, source: Sentence, decoding: Decoding) -> int:
        """Return the limit on the subwords of a source's translation.

        All translations of a batch have the same limit, so there are few different limits.
        """
        longest = self.longest[1] - len(self.first[1])
        return min(decoding.max_len or limit_length(len(source.pieces)), longest)

    def _find_longest_source(self, decoding: Decoding) -> int:
        longest = self.longest[0] - len(self.first[0])
        return min(decoding.max_source or longest, longest)

    def _find_long(self, sources: Sequence[Sentence], decoding: Decoding) -> dict[int, str]:
        """Return the indices of sources too long for the model, and the reasons."""
        longest = self._find_longest_source(decoding)
        return {
            index: f"{len(source.pieces)} subwords, but the model reads at most {longest}"
            for index, source in enumerate(sources)
            if len(source.pieces) > longest
        }

    def _log_warnings(self, translations: Sequence[Translation]) -> None:
        for warning, indices in self.list_warnings(translations).items():
            count = f"{len(indices)} of {len(translations)} sentences; this is the first of them"
            logger.warning(f"sentence {indices[0] + 1}: {warning}: {count}")


#: All models of this process.
_models: WeakSet[Model] = WeakSet()


def _note_fork() -> None:
    for model in [*_models]:
        model._note_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_note_fork)


def limit_length(size: int) -> int:
    """Return the default limit on a translation's subwords, for a source of ``size`` subwords.

    The limit is one of few numbers, so that sources of similar length are translated together; a
    search that does not end must not hold its batch for long.
    """
    return min(max(SHORT, 4 << (size - 1).bit_length()), MAX_LEN)


def make_batches(sources: Sequence[Sentence], size: int) -> Iterator[list[int]]:
    """Yield batches of indices of non-empty sources, with sources of similar length together.

    Args:
        sources: the sentences.
        size: the most sentences of a batch; the batch of the longest comes first.
    """
    lengths = np.array([len(source.pieces) for source in sources], dtype=int)
    order = [int(i) for i in np.argsort(-lengths, kind="stable") if lengths[i]]
    for start in range(0, len(order), size):
        yield order[start : start + size]


def make_unaligned(source: Sentence, translation: Translation) -> Alignment:
    """Return an alignment with zero weights, for a sentence pair whose source is empty."""
    target = translation.sentence
    return Alignment(source, target, np.zeros((len(target.pieces), len(source.pieces))))
