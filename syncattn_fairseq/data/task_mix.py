"""The training data of Multi-Task (Currey and Heafield, WMT 2019): translation and parsing, mixed.

A plain Transformer learns both from one corpus. In one half the source begins with ``<TR>`` and the
target is its translation; in the other the source begins with ``<PA>`` and the target is its
linearised parse.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from pathlib import Path
from random import Random
from typing import TypeAlias

from tqdm import tqdm

from ..base.errors import BadParse, DataError
from ..base.files import replacing
from ..base.text import count_lines, read_lines
from ..trees.brackets import parse_tree, simplify_word
from ..trees.tree import bracket_dependencies, linearise
from .parses import check_tree, read_heads
from .words import count_subwords, join_subwords

TRANSLATE, PARSE = "<TR>", "<PA>"


@dataclass
class MixCounts:
    """The contents of a mix, counted."""

    sentences: int = 0
    parsed: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        without = self.sentences - self.parsed - self.dropped.total()
        line = (
            f"{self.sentences} translations and as many parses, {self.sentences - self.parsed} of "
            f"them repeated; {without} sentences without parse, {self.dropped.total()} parses "
            "dropped"
        )
        why = ", ".join(f"{count} {reason}" for reason, count in self.dropped.most_common())
        return f"{line} ({why})" if why else line


@dataclass(frozen=True)
class SegmentedSentence:
    """The words of a sentence, and the subwords of each word, separated by spaces."""

    words: list[str]
    pieces: list[str]


Lineariser: TypeAlias = Callable[[SegmentedSentence, bool], "list[str] | None"]
"""Takes a sentence, and whether to keep its words; returns its linearised parse if it has one."""


@dataclass(frozen=True)
class PhraseStructures:
    """A file with the tree of each sentence in brackets; see `parse_tree`."""

    path: Path

    @property
    def files(self) -> Sequence[Path]:
        """What is read, line by line."""
        return [self.path]

    def __iter__(self) -> Iterator[Lineariser]:
        return (partial(self._linearise, line) for line in read_lines(self.path))

    @staticmethod
    def _linearise(line: str, sentence: SegmentedSentence, with_words: bool) -> list[str] | None:
        tree = parse_tree(line)
        if tree is None:
            return None
        leaves = list(tree.leaves())
        for number, (leaf, word) in enumerate(zip(leaves, sentence.words, strict=False), 1):
            if leaf != word and simplify_word(leaf) != simplify_word(word):
                raise BadParse(
                    "words differ", f"word {number} is {leaf!r}, but {word!r} in the text"
                )
        if len(leaves) != len(sentence.words):
            raise BadParse(
                "words differ", f"{len(leaves)} words, but {len(sentence.words)} in the text"
            )
        return linearise(tree, sentence.pieces if with_words else None)


@dataclass(frozen=True)
class Dependencies:
    """A file with the heads of each sentence, see `read_heads`, and one with their labels."""

    path: Path
    labels: Path | None = None

    @property
    def files(self) -> Sequence[Path]:
        """What is read, line by line."""
        return [self.path, *([self.labels] if self.labels else [])]

    def __iter__(self) -> Iterator[Lineariser]:
        labels = read_lines(self.labels) if self.labels else repeat(None)
        pairs = zip(read_heads(self.path), labels, strict=False)
        return (partial(self._linearise, *pair) for pair in pairs)

    @staticmethod
    def _linearise(
        heads: list[int] | None, line: str | None, sentence: SegmentedSentence, with_words: bool
    ) -> list[str] | None:
        if heads is None:
            return None
        labels = [""] * len(heads) if line is None else line.split()
        for name, values in (("heads", heads), ("labels", labels)):
            if len(values) != len(sentence.words):
                raise BadParse(
                    f"wrong number of {name}",
                    f"{len(values)} {name}, but {len(sentence.words)} words in the text",
                )
        check_tree(heads)
        tree = bracket_dependencies(heads, labels, sentence.pieces)
        return linearise(tree, tree.leaves() if with_words else None)


@dataclass(frozen=True)
class ParsedSource:
    """The source side, and its parses.

    Args:
        text: subwords, one sentence per line.
        scheme: how the text's subwords are written; see `find_word_starts`.
        parses: one for each line.
        with_words: keep the subwords of the words in the parses.
        on_bad_parse: ``stop`` if a parse does not fit its sentence, or ``drop`` the parse.
    """

    text: Path
    scheme: str
    parses: PhraseStructures | Dependencies
    with_words: bool = False
    on_bad_parse: str = "stop"

    def linearise_lines(self, counts: MixCounts) -> Iterator[tuple[str, str | None]]:
        """Yield each sentence with its linearised parse, or None if it has none.

        Args:
            counts: updated with every sentence.

        Raises:
            DataError: for the first fault, with file and line.
        """
        lines = tqdm(read_lines(self.text), unit=" sentences", disable=None)
        for text, parse in zip(lines, self.parses, strict=True):
            counts.sentences += 1
            subwords = iter(text.split())
            words = join_subwords(text.split(), self.scheme)
            lengths = count_subwords(text.split(), self.scheme)
            pieces = [" ".join(next(subwords) for _ in range(length)) for length in lengths]
            try:
                tokens = parse(SegmentedSentence(words, pieces), self.with_words)
            except BadParse as fault:
                if self.on_bad_parse == "stop":
                    raise DataError(
                        f"{self.parses.path}:{counts.sentences}: {fault} ({self.text}, "
                        f"{self.scheme}); correct it, leave the line empty for no parse, or use "
                        "--on-bad-parse drop"
                    ) from None
                counts.dropped[fault.reason] += 1
                tokens = None
            counts.parsed += tokens is not None
            yield text, None if tokens is None else " ".join(tokens)


def tag(sentence: str, task: str) -> str:
    """Put the task before the source, as its first token: ``TRANSLATE`` or ``PARSE``."""
    return f"{task} {sentence}"


def mix(source: ParsedSource, target: Path, outputs: tuple[Path, Path], seed: int = 1) -> MixCounts:
    """Write as many translations as parses, in random order; both files appear whole or not at all.

    Every sentence is translated once. If some have no parse, parses of others are repeated, as
    evenly as possible.

    Args:
        source: one side, with its parses.
        target: the other side.
        outputs: where to write the source and the target of the mix.
        seed: for the order and for the choice of parses to repeat.

    Raises:
        DataError: for the first fault in the input, with file and line.
    """
    count_lines(source.text, target, *source.parses.files)
    counts = MixCounts()
    examples = []
    parses = []
    for (text, parse), translation in zip(
        source.linearise_lines(counts), read_lines(target), strict=True
    ):
        examples.append((tag(text, TRANSLATE), translation))
        if parse is not None:
            parses.append((tag(text, PARSE), parse))
    if not parses:
        raise DataError(f"{source.parses.path}: no sentence has a parse")
    random = Random(seed)
    whole, rest = divmod(len(examples), len(parses))
    examples += parses * whole + random.sample(parses, rest)
    random.shuffle(examples)
    for path in outputs:
        path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        files = [
            stack.enter_context(open(stack.enter_context(replacing(path)), "w", encoding="utf-8"))
            for path in outputs
        ]
        for example in examples:
            for file, line in zip(files, example, strict=True):
                file.write(line + "\n")
    return counts
