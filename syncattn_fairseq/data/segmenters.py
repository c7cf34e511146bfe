"""Split plain text into the subwords of a model."""

from __future__ import annotations

import io
import re
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sentencepiece import SentencePieceProcessor

from ..base.errors import BadSentence, DataError
from ..base.files import open_file
from ..base.numbers import read_whole
from ..base.text import clean_line, is_encodable, read_file_lines
from .moses import find_first, lower_first
from .pieces import apply_pieces, open_pieces, reads_raw_text
from .preparation import Preparation, stored_preparations
from .splitters import UAX29, find_splitter
from .words import MARK, RAW, SYMBOLS, UNKNOWN, detect_scheme, is_raw, join_text

_REMEDY = "give the codes that subword-nmt learned, or a sentencepiece model"

#: The most different unknown subwords that are counted.
_MOST_UNKNOWN = 10_000
#: The most words whose subwords are cached, so that a long-running server does not keep them all.
_MOST_CACHED = 100_000

#: For each mark of subwords, a pattern of text in subwords, and the command that joins it.
_CUT = {
    "▁": (re.compile("^▁ |(?<!\\S)▁+[^\\s▁]|[^\\s▁]▁+(?!\\S)"), "sed 's/ //g; s/▁/ /g'"),
    "@@": (re.compile("[^\\s@]@@(?!\\S)"), "sed 's/@@ //g'"),
}


@dataclass(frozen=True)
class SubwordModel:
    """The files of a subword model, with the vocabulary that restricts its subwords.

    Args:
        path: the codes that subword-nmt learned, or a sentencepiece model.
        vocabulary: for codes, a file of allowed subwords and their counts, as subword-nmt writes
            it; words are split until all subwords are allowed. None: all subwords are allowed.
        threshold: the smallest count of an allowed subword.
    """

    path: str | Path
    vocabulary: str | Path | None = None
    threshold: int = 1

    def open(self) -> Segmenter:
        """Load the subword model; raise `DataError` for an invalid file or a missing package."""
        segmenter = open_segmenter(Path(self.path))
        if self.vocabulary is not None:
            if not isinstance(segmenter, Codes):
                raise DataError(
                    f"{self.path}: a vocabulary goes only with codes of subword-nmt; leave "
                    "--vocabulary out"
                )
            segmenter.restrict(read_vocabulary(self.vocabulary, self.threshold))
        return segmenter


SubwordFiles: TypeAlias = "str | Path | SubwordModel | Sequence[str | Path | SubwordModel] | None"
"""One subword model for both languages, or one each for source and target; None if not given."""


def read_vocabulary(path: str | Path, threshold: int) -> dict[str, int]:
    """Return the subwords of a vocabulary with counts of ``threshold`` or more.

    `DataError`: there are none, or a line has no count.
    """
    counts = {}
    for number, line in enumerate(read_file_lines(path), 1):
        subword, _, count = line.rpartition(" ")
        try:
            counts[subword] = read_whole(count)
        except ValueError:
            raise DataError(
                f"{path}:{number}: expected a subword and its count; give what subword-nmt "
                "get-vocab or learn-joint-bpe-and-vocab wrote"
            ) from None
    kept = {subword: count for subword, count in counts.items() if count >= threshold}
    if not kept:
        raise DataError(
            f"{path}: no subword has a count of {threshold} or more; give a lower threshold"
        )
    return kept


class Segmenter(ABC):
    """Base class of subword models, which split the words of sentences into subwords.

    Attributes:
        known: the rank of each subword in the model's dictionary, the most frequent first; empty:
            the dictionary is unknown.
        preparation: how sentences become words; None: unknown, and sentences are words.
        unknown: how often each subword occurred that the model does not have.
    """

    #: The scheme of the model's subword marks, see :func:`..data.words.find_word_starts`.
    scheme: str

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.preparation: Preparation | None = None
        self.unknown: Counter[str] = Counter()
        self._counted: set[str] = set()

    @abstractmethod
    def segment(self, words: Sequence[str]) -> list[str]:
        """Return the subwords of a sentence given as words."""

    def tokenise(self, sentences: Sequence[str]) -> list[str]:
        """Return raw sentences as words separated by spaces, as expected by the model."""
        if self.preparation is None:
            return [*sentences]
        lines = self.preparation.tokenise([*map(clean_line, sentences)])
        return [*map(self._lower_first, lines)] if self.preparation.case == "true" else lines

    def detokenise(self, lines: Sequence[str]) -> list[str]:
        """Return lines of words as raw sentences."""
        return [*lines] if self.preparation is None else self.preparation.detokenise(lines)

    def _lower_first(self, line: str) -> str:
        """Lower-case the first word of a sentence if the lower-cased word has better subwords."""
        assert self.preparation is not None
        words, rules = line.split(" "), self.preparation.rules
        index = find_first(words, rules)
        if index is not None:
            word = words[index]
            small = lower_first(word, self.preparation.language, rules)
            words[index] = min((word, small), key=self._rate)
        return " ".join(words)

    def _rate(self, word: str) -> tuple[int, int, int]:
        pieces = self.segment([word])
        ranks = [self.known[piece] for piece in pieces if piece in self.known]
        return len(pieces) - len(ranks), len(pieces), sum(ranks)

    def __call__(self, sentences: Sequence[str]) -> list[list[str]]:
        """Split sentences of words into subwords; raise `BadSentence` if one is split already.

        What has another meaning in a dictionary, such as ``</s>``, becomes ``<unk>``.
        """
        rows = []
        for number, sentence in enumerate(sentences, 1):
            if not is_encodable(sentence):
                raise BadSentence(
                    number, "not UTF-8: the text has half of a character; give whole characters"
                )
            words = clean_line(sentence).split()
            self._refuse_subwords(number, words)
            pieces = self.segment(words)
            rows.append([UNKNOWN if piece in SYMBOLS else piece for piece in pieces])
            # What was split before, for another task, is not counted again.
            counts = sentence not in self._counted and len(self.unknown) < _MOST_UNKNOWN
            if self.known and counts:
                self.unknown.update(piece for piece in rows[-1] if piece not in self.known)
        self._counted = {*sentences}
        return rows

    def _refuse_subwords(self, number: int, words: Sequence[str]) -> None:
        text = " ".join(words)
        for mark, (pattern, remedy) in _CUT.items():
            are_words = any(mark in word and word in self.known for word in words)
            if pattern.search(text) and not (self.scheme == "none" and are_words):
                raise BadSentence(
                    number, f"the text is in subwords already ({text[:40]!r}); give words: {remedy}"
                )

    def describe_unknown(self) -> str:
        """Return a warning about subwords outside the model's dictionary; "" if there were none."""
        if not self.unknown:
            return ""
        examples = ", ".join(subword for subword, _ in self.unknown.most_common(3))
        return (
            f"{self.unknown.total()} subwords of the text are not in the model's dictionary and "
            f"are read as {UNKNOWN}, such as {examples}; if there are many, the training text "
            "was split differently"
        )


class Words(Segmenter):
    """Segmenter for a model without subwords, which leaves words unchanged."""

    scheme = "none"

    def segment(self, words: Sequence[str]) -> list[str]:
        """Return the words unchanged."""
        return list(words)


class Subwords(Segmenter):
    """Segmenter for text in subwords already, such as the text of a binarised corpus.

    Args:
        scheme: how the text's subwords are marked.
    """

    def __init__(self, scheme: str) -> None:
        super().__init__()
        self.scheme = scheme

    def segment(self, words: Sequence[str]) -> list[str]:
        """Return the input unchanged, which is in subwords already."""
        return list(words)

    def _refuse_subwords(self, number: int, words: Sequence[str]) -> None:
        """Accept every line."""


class Pieces(Segmenter):
    """Segmenter with a sentencepiece model of tokenised sentences."""

    scheme = "sentencepiece"

    def __init__(self, processor: SentencePieceProcessor) -> None:
        super().__init__()
        self.processor = processor

    def segment(self, words: Sequence[str]) -> list[str]:
        """Return the sentencepiece pieces of a sentence given as words."""
        return apply_pieces(self.processor, " ".join(words), self.known)


class RawPieces(Pieces):
    """Segmenter with a sentencepiece model of raw sentences, which need no tokenizer.

    Models of `.pieces.learn_raw_pieces` change no character; published ones may change some.
    """

    scheme = f"{RAW}{UAX29}"

    def _refuse_subwords(self, number: int, words: Sequence[str]) -> None:
        """Raise `BadSentence` for a line certainly in pieces; accept all other lines."""
        marked = len(words) > 1 and words[0].startswith(MARK)
        if marked and self.segment([join_text(words, self.scheme)]) == [*words]:
            line, remedy = " ".join(words), _CUT[MARK][1]
            raise BadSentence(
                number, f"the text is in subwords already ({line[:40]!r}); give sentences: {remedy}"
            )


class Codes(Segmenter):
    """Segmenter with BPE codes learned by subword-nmt.

    `DataError`: the package or the codes are unusable.
    """

    scheme = "subword_nmt"

    def __init__(self, path: Path) -> None:
        super().__init__()
        try:
            from subword_nmt.apply_bpe import BPE
        except ImportError:
            raise DataError(
                f"{path}: these codes need subword-nmt; pip install 'syncattn-fairseq[subword-nmt]'"
            ) from None
        lines = [*read_file_lines(path)]
        while lines and not lines[-1]:
            lines.pop()
        version = bool(lines) and lines[0].startswith("#version:")
        if len(lines) == version:
            raise DataError(f"{path}: the file has no pairs of subwords to join; {_REMEDY}")
        for number, line in enumerate(lines[version:], 1 + version):
            if len(line.strip("\r ").split(" ")) != 2:  # subword-nmt would end the program
                raise DataError(f"{path}:{number}: expected two subwords to join; {_REMEDY}")
        try:
            self.bpe = BPE(io.StringIO("\n".join(lines)))
            self.segment(["word"])
        except (ValueError, NotImplementedError):
            raise DataError(
                f"{path}:1: this version of codes is unknown to subword-nmt; {_REMEDY}"
            ) from None

    def restrict(self, vocabulary: Container[str]) -> None:
        """Split words further, until each subword is in a vocabulary or is a character."""
        self.bpe.vocab = vocabulary
        self.bpe.cache = {}

    def segment(self, words: Sequence[str]) -> list[str]:
        """Return the subwords into which the BPE codes split words."""
        if len(self.bpe.cache) > _MOST_CACHED:
            self.bpe.cache = {}
        subwords: list[str] = self.bpe.segment_tokens(words)
        return subwords


def open_segmenter(path: Path) -> Segmenter:
    """Load a sentencepiece model or codes of subword-nmt; raise `DataError` for another file."""
    with open_file(path) as file:
        # Protocol buffers begin with a line feed, the tag of their first field; codes are text.
        if file.read(1) != b"\n":
            return Codes(path)
    processor = open_pieces(path)
    return RawPieces(processor) if reads_raw_text(processor) else Pieces(processor)


def is_file_name(name: object) -> bool:
    """Return whether a value, such as a language from a file, can safely be part of a file name."""
    return isinstance(name, str) and re.fullmatch(r"[\w.+-]{1,100}", name) is not None


def name_subwords(language: str) -> str:
    """Return the name of a language's subword model file in folders."""
    return f"subwords.{language}"


def name_vocabulary(language: str) -> str:
    """Return the name of a language's file of allowed subwords in folders."""
    return f"vocabulary.{language}"


def store_subwords(folder: Path, languages: Sequence[str], models: Sequence[SubwordModel]) -> None:
    """Copy the subword models of languages, and their allowed subwords, into a folder."""
    for model, language in zip(models, languages, strict=True):
        shutil.copyfile(model.path, folder / name_subwords(language))
        if model.vocabulary is not None:
            lines = format_vocabulary(model)
            (folder / name_vocabulary(language)).write_text(lines, encoding="utf-8")


def format_vocabulary(model: SubwordModel) -> str:
    """Return the allowed subwords of a model, with counts, as text; "" without a vocabulary."""
    if model.vocabulary is None:
        return ""
    counts = read_vocabulary(model.vocabulary, model.threshold)
    return "".join(f"{subword} {count}\n" for subword, count in counts.items())


def find_subwords(
    folders: Sequence[Path], source: str, target: str
) -> tuple[SubwordModel, SubwordModel] | None:
    """Return the subword models of source and target in the first folder with both, or None."""
    for folder in folders:
        models = []
        for language in (source, target):
            path, vocabulary = folder / name_subwords(language), folder / name_vocabulary(language)
            if path.is_file():
                models.append(SubwordModel(path, vocabulary if vocabulary.is_file() else None))
        if len(models) == 2:
            return models[0], models[1]
    return None


def open_segmenters(
    models: SubwordFiles,
    folders: Sequence[Path],
    languages: tuple[str, str],
    vocabularies: tuple[Sequence[str], Sequence[str]],
    schemes: tuple[str | None, str | None] = (None, None),
    in_subwords: bool = False,
) -> tuple[Segmenter, Segmenter]:
    """Return the segmenters of source and target, from given models or those in folders.

    Args:
        models: the subword models; None: those in the folders.
        folders: folders to search, in this order, for subword models and preparations.
        languages: the source and the target language.
        vocabularies: the subwords that the model knows on each side, the most frequent first.
        schemes: how each side marks subwords; None: as its vocabulary shows.
        in_subwords: whether text is in subwords already, so that no model is needed.

    Raises:
        DataError: a vocabulary of subwords has no subword model, or one that does not match it.
    """
    pair = None if in_subwords else pair_subwords(models) or find_subwords(folders, *languages)
    records = filter(None, map(stored_preparations, folders))
    preparations = {} if in_subwords else next(records, {})
    segmenters: list[Segmenter] = []
    for side, language, vocabulary in zip((0, 1), languages, vocabularies, strict=True):
        scheme, preparation = schemes[side], preparations.get(language)
        scheme = scheme or detect_scheme(vocabulary)
        if pair is None and scheme != "none" and not in_subwords:
            raise DataError(
                f"the model reads and writes subwords ({scheme}), and its folder has no subword "
                "model; name the subword model (--subwords)"
            )
        if in_subwords:
            segmenter: Segmenter = Subwords(scheme)
        else:
            segmenter = pair[side].open() if pair else Words()
        if isinstance(segmenter, Pieces) and is_raw(scheme):
            segmenter = RawPieces(segmenter.processor)
        if isinstance(segmenter, RawPieces):
            preparation = preparation or Preparation("raw", language)
            if schemes[side] is None:
                scheme = f"{RAW}{find_splitter(language)[0]}"
            if is_raw(scheme) and preparation.tokenizer == "raw":
                segmenter.scheme = scheme
        if pair and segmenter.scheme != scheme:
            raise DataError(
                f"{pair[side].path}: marks subwords as {segmenter.scheme}, but the text of "
                f"{language} marks them as {scheme}; give the subword model of the training"
            )
        known = (word for word in vocabulary if word not in SYMBOLS and word != UNKNOWN)
        segmenter.known = {word: rank for rank, word in enumerate(known)}
        segmenter.preparation = preparation
        segmenters.append(segmenter)
    return segmenters[0], segmenters[1]


def pair_subwords(models: SubwordFiles) -> tuple[SubwordModel, SubwordModel] | None:
    """Return the subword models of source and target, from one for both or two; None for None.

    `DataError`: there are more than two, or none.
    """
    if models is None:
        return None
    given = [models] if isinstance(models, str | Path | SubwordModel) else models
    pair = [m if isinstance(m, SubwordModel) else SubwordModel(m) for m in given]
    if not 1 <= len(pair) <= 2:
        raise DataError(
            f"{len(pair)} subword models; give one, or one for the source and one for the target"
        )
    return pair[0], pair[-1]
