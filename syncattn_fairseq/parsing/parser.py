"""The interface of dependency parsers: words in, heads and labels out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from ..base.errors import BadParse, DataError
from ..data.spans import Span
from ..data.splitters import split_words

#: The most words of a sentence to parse by default: time and memory grow faster than the square of
#: the length, and reach 2 s and 0.4 GB at this many words on a CPU.
MAX_WORDS = 500

#: The reason for a missing parse (see `BadParse`) if the parser itself fails on a sentence.
FAILED = "parser failed"

# After this many failures in a row, the sentences are not to blame.
_FAILURES = 100

Sentences: TypeAlias = Sequence[Sequence[str]]
"""Sentences to parse, each a sequence of words."""

Tokens: TypeAlias = tuple[list[str], list[Span]]
"""The words of a raw sentence, and the character span of each; several words may share a span."""


class Morphology(NamedTuple):
    """Lemma, parts of speech and features of a word, as in CoNLL-U; ``_`` for a missing value."""

    lemma: str
    upos: str
    xpos: str
    feats: str


class Parse(NamedTuple):
    """The dependency tree of a sentence, as heads and labels of its words.

    Attributes:
        heads: for each word the 1-based position of its head; 0 for the root.
        labels: the relation of each word to its head.
        morphology: lemma, parts of speech and features of each word; empty if unknown.
        words: the words of a raw sentence; empty if the words were given.
        spans: the character span of each of these words in the sentence.
    """

    heads: list[int]
    labels: list[str]
    morphology: Sequence[Morphology] = ()
    words: Sequence[str] = ()
    spans: Sequence[Span] = ()


class Parser(ABC):
    """A dependency parser of tokenised sentences; a subclass may also tokenise raw sentences."""

    #: Number of sentences in a row, up to the last one, for which a call returned no parse.
    in_a_row = 0

    @abstractmethod
    def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
        """Yield each sentence's index, with its parse or the reason for having none, in any order.

        This is what a subclass implements. Each sentence that it gets has at least one word, and
        each word at least one character, of any kind. That the heads form a tree is not checked.

        Raises:
            DataError: the parser does not work at all.
        """

    def split(self, sentences: Sequence[str], splitter: str) -> list[Tokens]:
        """Split raw sentences into words for `analyse`, with the words' character spans.

        Args:
            sentences: raw sentences without line ends; blank ones have no words.
            splitter: the name of a splitter of :mod:`..data.splitters`, used if the parser has none
                of its own.

        Returns:
            For each sentence, the words and their spans. Words that share a span are those of a
            multiword token: German *zum* stands for *zu dem*.

        Raises:
            DataError: the splitter is not installed.
        """
        return [split_by_rule(sentence, splitter) for sentence in sentences]

    def parse_raw(self, sentences: Sequence[str], splitter: str) -> list[Parse | None]:
        """Parse raw sentences; return for each the parse with words and spans, or None.

        Args:
            sentences: raw sentences without line ends.
            splitter: see `split`.
        """
        tokens = self.split(sentences, splitter)
        parses = self([words for words, _ in tokens])
        return [
            parse and parse._replace(words=words, spans=spans)
            for parse, (words, spans) in zip(parses, tokens, strict=True)
        ]

    def __call__(self, sentences: Sentences) -> list[Parse | None]:
        """Parse tokenised sentences; return for each, in order, the parse or None.

        Words may contain any character, even spaces.

        Returns:
            For each sentence, in order, a parse with one head for each of its words, or None if it
            is empty, has an empty word or more than ``MAX_WORDS`` words, or the parser fails on it.

        Raises:
            DataError: the parser failed on too many sentences in a row, earlier calls included.
        """
        parses: list[Parse | None] = [None] * len(sentences)
        indices = [
            index
            for index, words in enumerate(sentences)
            if words and all(words) and len(words) <= MAX_WORDS
        ]
        for index, parse in self.analyse([sentences[index] for index in indices]):
            if isinstance(parse, Parse) and len(parse.heads) == len(sentences[indices[index]]):
                parses[indices[index]] = parse
                self.in_a_row = 0
                continue
            self.in_a_row += 1
            if self.in_a_row == _FAILURES:
                reason = parse if isinstance(parse, BadParse) else "it had other words"
                raise DataError(
                    f"the parser found no parse for {_FAILURES} sentences in a row; its reason "
                    f"for the last sentence: {reason}"
                )
        return parses


class ParserSource(ABC):
    """The picklable description of a parser, from which each process opens its own copy.

    Attributes:
        about: the parser in a few words, for ``syncattn-parse --help``.
        specs: the forms of the text after ``NAME:`` for :func:`.parsers.open_parser`.
        options: its own options of ``syncattn-parse``, as arguments of ``add_argument``.
        needs: the options of ``syncattn-parse`` that it requires.
    """

    about: ClassVar[str]
    specs: ClassVar[tuple[str, ...]]
    options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    needs: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def from_options(cls, options: Namespace) -> Self:
        """Make a parser's description from options of ``syncattn-parse``, or raise `DataError`."""
        return cls()

    @classmethod
    @abstractmethod
    def from_spec(cls, spec: str) -> ParserSource | None:
        """Make a parser's description from a text, such as the ``en`` of ``stanza:en``, or None."""

    def modules(self) -> list[str]:
        """List the names of slow modules, to be imported before processes start."""
        return []

    def files(self) -> list[Path]:
        """List the files that parses depend on, if known; raise `DataError` if one is missing."""
        return []

    def splitting_files(self) -> list[Path] | None:
        """List further files of the parser's own word splitter; None if it has no splitter."""
        return None

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return the other facts that parses depend on, such as the parser's version, by name."""

    @abstractmethod
    def open(self, worker: int | None = None) -> Parser:
        """Load the parser.

        Args:
            worker: the number of this process, from 0, among several that parse in parallel; None:
                no other process parses.

        Raises:
            DataError: a library, a program or a model is missing.
        """


def split_by_rule(sentence: str, splitter: str) -> Tokens:
    """Return the words of a raw sentence and their character spans, by the named word splitter.

    `DataError`: the splitter is not installed.
    """
    spans = split_words(sentence, splitter)
    return [sentence[begin:end] for begin, end in spans], spans


def parse_in_halves(
    parse: Callable[[Sentences], Iterable[Parse | BadParse]],
    sentences: Sentences,
    blocks: Iterable[Sequence[int]],
) -> Iterator[tuple[int, Parse | BadParse]]:
    """Parse blocks of sentences; when a block fails, parse its rest again in halves.

    So a sentence on which the parser fails does not affect the others. Blocks are lists of indices.
    When ``parse``, which parses a block in order, raises anything, the rest of the block is parsed
    again in halves. `DataError`: it raised that, or fails on too many sentences in a row.
    """
    in_a_row = 0
    for block in blocks:
        parts = [block]
        while parts:
            part = parts.pop()
            done = 0
            try:
                for result in parse([sentences[index] for index in part]):
                    yield part[done], result
                    done += 1
                    in_a_row = 0
            except DataError:
                raise
            except Exception as error:
                rest, detail = part[done:], f"{type(error).__name__}: {error}"
                if len(rest) > 1:
                    middle = len(rest) // 2
                    parts += [rest[middle:], rest[:middle]]
                    continue
                in_a_row += 1
                if in_a_row == _FAILURES:
                    raise DataError(
                        f"the parser failed on {in_a_row} sentences in a row; the last failure: "
                        f"{detail}"
                    ) from error
                yield from ((index, BadParse(FAILED, detail)) for index in rest)
