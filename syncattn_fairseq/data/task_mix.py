"""The training data of Multi-Task (Currey and Heafield, WMT 2019): translation and parsing, mixed.

A plain Transformer learns both from one corpus. In one half the source begins with ``<TR>`` and the
target is its translation; in the other the source begins with ``<PA>`` and the target is its
linearised parse.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from random import Random

from tqdm import tqdm

from ..base.errors import BadParse, DataError
from ..base.files import replacing
from ..base.text import count_lines, read_lines
from ..trees.brackets import parse_tree, simplify_word
from ..trees.tree import bracket_dependencies, linearise
from .parses import check_tree, parse_heads, parse_spans
from .spans import Units, find_runs
from .words import find_word_starts, join_subwords, split_units

TRANSLATE, PARSE = "<TR>", "<PA>"


@dataclass
class MixCounts:
    """Counts of sentences and parses in a mixed training text."""

    sentences: int = 0
    parsed: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        without = self.sentences - self.parsed - self.dropped.total()
        line = (
            f"{self.sentences} translations and as many parses, {self.sentences - self.parsed} "
            f"of the parses repeated; {without} sentences without parse, {self.dropped.total()} "
            "parses dropped"
        )
        why = ", ".join(f"{count} {reason}" for reason, count in self.dropped.most_common())
        return f"{line} ({why})" if why else line


@dataclass(frozen=True)
class ParsedSource:
    """The source in subwords, with parses: trees in brackets, or heads and perhaps labels.

    Args:
        scheme: how the text's subwords are written; see `find_word_starts`.
        trees: a tree in brackets for each line; see `parse_tree`.
        heads: the heads of each line's words; see `parse_heads`.
        with_words: keep the subwords of the words in the parses.
        on_bad_parse: ``stop`` if a parse does not fit its sentence, or ``drop`` the parse.
        spans: the spans of the words of heads in raw sentences; None: found by the scheme.
        sentences: the raw sentences of ``spans``; None: the subwords join to them.
    """

    text: Path
    scheme: str
    trees: Path | None = None
    heads: Path | None = None
    labels: Path | None = None
    with_words: bool = False
    on_bad_parse: str = "stop"
    spans: Path | None = None
    sentences: Path | None = None

    @property
    def parses(self) -> list[Path]:
        """The files of the parses: of trees, or of heads and labels."""
        return [path for path in (self.trees, self.heads, self.labels) if path]

    @property
    def files(self) -> list[Path]:
        """All files with a line for each sentence."""
        others = (path for path in (self.spans, self.sentences) if path)
        return [self.text, *self.parses, *others]

    def linearise_lines(self, counts: MixCounts) -> Iterator[tuple[str, str | None]]:
        """Yield each sentence with its linearised parse, or with None if it has no parse.

        `DataError` names the first fault.
        """
        lines = tqdm(read_lines(self.text), unit=" sentences", disable=None)
        parses = zip(*map(read_lines, self.parses), strict=True)
        places, sentences = (
            read_lines(path) if path else repeat("") for path in (self.spans, self.sentences)
        )
        rows = zip(lines, parses, places, sentences)  # noqa: B905  (repeat)
        for text, parse, spans, sentence in rows:
            counts.sentences += 1
            subwords = text.split()
            try:
                if self.trees:
                    tokens = self._linearise_tree(parse[0], subwords)
                elif heads := parse_heads(parse[0], self.parses[0], counts.sentences):
                    words = None
                    if self.spans:
                        words = parse_spans(spans, self.spans, counts.sentences)
                    units = split_units(subwords, self.scheme, words, sentence)
                    tokens = self._linearise_heads(heads, parse[1:], subwords, units)
                else:
                    tokens = None
            except BadParse as fault:
                if self.on_bad_parse == "stop":
                    raise DataError(
                        f"{self.parses[0]}:{counts.sentences}: {fault} ({self.text}, "
                        f"{self.scheme}); correct the line, leave it empty for no parse, or use "
                        "--on-bad-parse drop"
                    ) from None
                counts.dropped[fault.reason] += 1
                tokens = None
            counts.parsed += tokens is not None
            yield text, None if tokens is None else " ".join(tokens)

    def _linearise_tree(self, line: str, subwords: list[str]) -> list[str] | None:
        tree = parse_tree(line)
        if tree is None:
            return None
        leaves, words = list(tree.leaves()), join_subwords(subwords, self.scheme)
        for number, (leaf, word) in enumerate(zip(leaves, words, strict=False), 1):
            if leaf != word and simplify_word(leaf) != simplify_word(word):
                raise BadParse(
                    "words differ",
                    f"word {number} is {leaf!r} in the tree, but {word!r} in the text",
                )
        if len(leaves) != len(words):
            raise BadParse(
                "words differ", f"{len(leaves)} words in the tree, but {len(words)} in the text"
            )
        starts = find_word_starts(subwords, self.scheme)
        return linearise(tree, _cut(subwords, starts) if self.with_words else None)

    def _linearise_heads(
        self, heads: list[int], lines: Sequence[str], subwords: list[str], units: Units
    ) -> list[str]:
        relations = lines[0].split() if lines else [""] * len(heads)
        for name, values in (("heads", heads), ("labels", relations)):
            if len(values) != len(units.of_words):
                raise BadParse(
                    f"wrong number of {name}",
                    f"{len(values)} {name}, but {len(units.of_words)} words in the text",
                )
        check_tree(heads)
        tree = bracket_dependencies(
            units.map_heads(heads),
            units.map_labels(relations, heads),
            _cut(subwords, units.starts),
        )
        return linearise(tree, tree.leaves() if self.with_words else None)


def _cut(subwords: Sequence[str], starts: Sequence[bool]) -> list[str]:
    """Return the subwords of each word as a text, separated by spaces."""
    return [" ".join(subwords[begin:end]) for begin, end in find_runs(starts)]


def tag(sentence: str, task: str) -> str:
    """Return a source sentence with the task's token before it, ``TRANSLATE`` or ``PARSE``."""
    return f"{task} {sentence}"


def mix(source: ParsedSource, target: Path, outputs: tuple[Path, Path], seed: int = 1) -> MixCounts:
    """Write a training text of translations and as many parses, in random order.

    Both files appear whole or not at all. Every sentence is translated once. If some have no parse,
    parses of others are repeated, as evenly as possible. The seed decides about the order, and
    which are repeated. `DataError` names the first fault in the input.

    Args:
        source: the source in subwords, with parses.
        target: the translations in subwords.
        outputs: the files of source and target to write.
        seed: the seed of the order and of the repeated parses.
    """
    count_lines(source.text, target, *source.files[1:])
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
        raise DataError(f"{source.parses[0]}: no sentence has a parse")
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
