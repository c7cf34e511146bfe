"""The interface of parsers: words in, heads and labels out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from ..base.errors import BadParse, DataError
from ..data.spans import Span
from ..data.splitters import split_words

#: Longer sentences are not parsed: time and memory grow faster than the square of the length, and
#: reach 2 s and 0.4 GB at this many words on a CPU.
MAX_WORDS = 500

#: The reason for a missing parse if the parser itself fails, see `BadParse`.
FAILED = "parser failed"

# After this many failures in a row, the sentences are not to blame.
_FAILURES = 100

Sentences: TypeAlias = Sequence[Sequence[str]]
"""The words of each sentence."""

Tokens: TypeAlias = tuple[list[str], list[Span]]
"""The words of a sentence as people write it, and where they are; several may share a place."""


class Morphology(NamedTuple):
    """A tagger's analysis of a word, as in CoNLL-U; ``_`` for nothing."""

    lemma: str
    upos: str
    xpos: str
    feats: str


class Parse(NamedTuple):
    """The dependency tree of one sentence.

    Attributes:
        heads: for each word the 1-based position of its head; 0 for the root.
        labels: the relation of each word to its head.
        morphology: further facts about each word; empty, or one entry per word.
        words: those of a sentence as people write it; empty: the words were given.
        spans: where each of these is in the sentence, in characters.
    """

    heads: list[int]
    labels: list[str]
    morphology: Sequence[Morphology] = ()
    words: Sequence[str] = ()
    spans: Sequence[Span] = ()


class Parser(ABC):
    """A parser of sentences in words; a subclass may also split raw sentences."""

    #: How many sentences the parser was called for since the last one with a parse.
    in_a_row = 0

    @abstractmethod
    def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
        """Yield each sentence's index with its tree or the reason for having none, in any order.

        The trees are not checked to be trees. Each sentence has at least one word, and each word at
        least one character, of any kind.

        Raises:
            DataError: the parser does not work at all.
        """

    def split(self, sentences: Sequence[str], splitter: str) -> list[Tokens]:
        """Split raw sentences into the words for `analyse`.

        Args:
            sentences: any number, each without line ends; blank ones have no words.
            splitter: of :mod:`..data.splitters`, for a parser that cannot split; others do not use
                it.

        Returns:
            The words and their spans. A word that shares its span with others is what the parser
            has in place of a part of the sentence: German *zum* stands for *zu dem*.

        Raises:
            DataError: the splitter is not installed.
        """
        return [split_by_rule(sentence, splitter) for sentence in sentences]

    def parse_raw(self, sentences: Sequence[str], splitter: str) -> list[Parse | None]:
        """Parse sentences as people write them: as a call, but the parses have words and spans.

        Args:
            sentences: any number, each without line ends.
            splitter: see `split`.
        """
        tokens = self.split(sentences, splitter)
        parses = self([words for words, _ in tokens])
        return [
            parse and parse._replace(words=words, spans=spans)
            for parse, (words, spans) in zip(parses, tokens, strict=True)
        ]

    def __call__(self, sentences: Sentences) -> list[Parse | None]:
        """Parse any number of sentences, whose words may contain any character, even spaces.

        Returns:
            For each sentence, in order, a parse with one head for each of its words, or None if it
            is empty, has an empty word or more than ``MAX_WORDS`` words, or the parser fails on it.

        Raises:
            DataError: it fails on too many sentences in a row, of this call and those before.
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
    """Makes the same parser in every process; can be pickled.

    Attributes:
        about: the parser in a few words, for ``syncattn-parse --help``.
        specs: what follows its name in a spec for :func:`.parsers.open_parser`.
        options: those of ``syncattn-parse`` that only it has: arguments of ``add_argument``.
        needs: the options that it requires.
    """

    about: ClassVar[str]
    specs: ClassVar[tuple[str, ...]]
    options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    needs: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def from_options(cls, options: Namespace) -> Self:
        """Make a source from options of ``syncattn-parse``; `DataError` if they define none."""
        return cls()

    @classmethod
    @abstractmethod
    def from_spec(cls, spec: str) -> ParserSource | None:
        """Make a source from a text in a form of ``specs``; return None for any other text."""

    def modules(self) -> list[str]:
        """List modules that are slow to import, to be imported once for all processes."""
        return []

    def files(self) -> list[Path]:
        """List all known files behind the parses; `DataError` if a file is missing."""
        return []

    def splitting_files(self) -> list[Path] | None:
        """List the additional files for the parser's own splitter; None without an own splitter."""
        return None

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return what else the parses depend on, by name."""

    @abstractmethod
    def open(self, worker: int | None = None) -> Parser:
        """Make the parser.

        Args:
            worker: this process's number, from 0, among several that parse in parallel; None: it is
                the only one.

        Raises:
            DataError: something is missing.
        """


def split_by_rule(sentence: str, splitter: str) -> Tokens:
    """Split a sentence with a splitter of :mod:`..data.splitters`; `DataError` if not installed."""
    spans = split_words(sentence, splitter)
    return [sentence[begin:end] for begin, end in spans], spans


def parse_in_halves(
    parse: Callable[[Sentences], Iterable[Parse | BadParse]],
    sentences: Sentences,
    blocks: Iterable[Sequence[int]],
) -> Iterator[tuple[int, Parse | BadParse]]:
    """Parse blocks of sentences (indices); a failing sentence does not affect the others.

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
