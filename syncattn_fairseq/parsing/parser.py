"""What a parser is: words in, heads and labels out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

from ..base.errors import BadParse, DataError

#: Longer sentences are not parsed: time and memory grow faster than the square of the length,
#: to 2 s and 0.4 GB for this many words on a CPU.
MAX_WORDS = 500

#: The reason why there is no parse where the parser itself fails, see `BadParse`.
FAILED = "parser failed"

# What fails on so many sentences in a row is not the sentences.
_FAILURES = 100

Sentences: TypeAlias = Sequence[Sequence[str]]
"""The words of each sentence."""


class Morphology(NamedTuple):
    """What a tagger says of one word, as in CoNLL-U; ``_`` for nothing."""

    lemma: str
    upos: str
    xpos: str
    feats: str


class Parse(NamedTuple):
    """The dependency tree of one sentence.

    Attributes:
        heads: for each word the 1-based position of its head; 0 for the root.
        labels: the relation of each word to its head.
        morphology: what is known of each word beyond that; nothing, or one for each.
    """

    heads: list[int]
    labels: list[str]
    morphology: Sequence[Morphology] = ()


class Parser(ABC):
    """Whatever parses sentences that are cut into words already."""

    @abstractmethod
    def analyse(self, sentences: Sentences) -> Iterator[tuple[int, Parse | BadParse]]:
        """Yield for each sentence, in any order, its index and a tree, or why there is none.

        Nobody has checked that the trees are trees.

        Args:
            sentences: one word or more in each, of any characters, one or more in each.

        Raises:
            DataError: the parser does not work at all.
        """

    def __call__(self, sentences: Sentences) -> list[Parse | None]:
        """Parse any number of sentences.

        Args:
            sentences: with words of any characters, spaces too.

        Returns:
            A tree over exactly the words of each sentence, in the order of the sentences; None
            where there is none: for an empty sentence, an empty word or more than ``MAX_WORDS``,
            and for a sentence that the parser cannot parse.
        """
        parses: list[Parse | None] = [None] * len(sentences)
        indices = [
            index
            for index, words in enumerate(sentences)
            if words and all(words) and len(words) <= MAX_WORDS
        ]
        for index, found in self.analyse([sentences[index] for index in indices]):
            if isinstance(found, Parse):
                parses[indices[index]] = found
        return parses


class ParserSource(ABC):
    """What makes the same parser in every process; can be pickled.

    Attributes:
        about: what parses, in a few words, for ``syncattn-parse --help``.
        specs: how :func:`.registry.open_parser` is asked for it, without its name.
        needs: the options of ``syncattn-parse`` that it cannot do without.
        takes: the other options that it has.
    """

    about: ClassVar[str]
    specs: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[str, ...]]
    takes: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    @abstractmethod
    def add_options(group: Any) -> None:
        """Add those of its options to a group of ``argparse`` that no other parser has."""

    @classmethod
    @abstractmethod
    def from_options(cls, options: Namespace) -> ParserSource:
        """Take what ``syncattn-parse`` was given.

        Raises:
            DataError: it makes no parser.
        """

    @classmethod
    @abstractmethod
    def from_spec(cls, spec: str) -> ParserSource | None:
        """Take one of its ``specs``; return None for anything else."""

    def modules(self) -> list[str]:
        """Return what is slow to import, to be imported once for all processes."""
        return []

    @abstractmethod
    def files(self) -> list[Path]:
        """Return every file that the parses are known to depend on.

        Raises:
            DataError: something is missing.
        """

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return what else they depend on."""

    @abstractmethod
    def open(self, worker: int | None = None) -> Parser:
        """Make the parser.

        Args:
            worker: the number of this process, from 0, among several that parse side by side; None
                if it is the only one.

        Raises:
            DataError: something is missing.
        """


def parse_in_halves(
    parse: Callable[[Sentences], Iterable[Parse | BadParse]],
    sentences: Sentences,
    blocks: Iterable[Sequence[int]],
) -> Iterator[tuple[int, Parse | BadParse]]:
    """Parse blocks of sentences; one on which the parser fails costs only itself.

    What is left of a block when the parser raises is parsed again in halves.

    Args:
        parse: of a block, in order; may raise whatever it likes, after some sentences or none.
        sentences: all of them.
        blocks: the indices of those to be parsed together.

    Raises:
        DataError: ``parse`` raised it, or fails on one sentence after the other.
    """
    in_a_row = 0
    for block in blocks:
        parts = [block]
        while parts:
            part = parts.pop()
            done = 0
            try:
                for found in parse([sentences[index] for index in part]):
                    yield part[done], found
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
                        f"the parser failed on {in_a_row} sentences in a row, at last with {detail}"
                    ) from error
                yield from ((index, BadParse(FAILED, detail)) for index in rest)
