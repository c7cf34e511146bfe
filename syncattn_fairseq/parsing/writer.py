"""Write parses as files of heads, labels, spans and CoNLL-U, and count them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from ..base.errors import BadParse
from ..data.parses import SPANS, check_tree
from ..data.spans import check_spans, format_spans
from ..trees.tree import format_conllu
from .parser import FAILED, Parse

HEADS, LABELS, CONLLU = "heads", "labels", "conllu"

# How many failures to keep.
_FAILURES = 5


@dataclass
class ParseReport:
    """Counts of sentences, words and missing parses in a text or a part of it.

    Attributes:
        sentences, words: the number of lines, and of words in all lines.
        empty: the number of lines without a parse, by reason.
        failures: the first lines on which the parser itself failed: their numbers, and details.
    """

    sentences: int = 0
    words: int = 0
    empty: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)

    def fail(self, line: int, detail: str) -> None:
        """Note a line on which the parser failed, with details; only the first few are kept."""
        if len(self.failures) < _FAILURES:
            self.failures.append((line, detail))

    def add(self, part: ParseReport) -> None:
        """Add the counts of the next part of the text to this report."""
        self.sentences += part.sentences
        self.words += part.words
        self.empty += part.empty
        for failure in part.failures:
            self.fail(*failure)

    def summarise(self) -> str:
        """Return a line: ``3 sentences, 17 words, 1 without a parse (empty line: 1)``."""
        counts = f"{self.sentences:,} sentences, {self.words:,} words, "
        if not self.empty:
            return counts + "all parsed"
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in self.empty.most_common())
        return counts + f"{self.empty.total():,} without a parse ({reasons})"

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ParseReport:
        """Make a report from its fields by name, as read from JSON."""
        return cls(
            values["sentences"],
            values["words"],
            Counter(values["empty"]),
            [(line, detail) for line, detail in values["failures"]],
        )


class ParseWriter:
    """Writer of the parses of a text's lines, which also counts them.

    Heads, labels and spans have one line per line of the text, empty if there is no parse. CoNLL-U
    has the sentences with a parse, with the line number as ``sent_id``; the first line may have
    another.
    """

    def __init__(self, files: Mapping[str, TextIO], first_line: int = 1) -> None:
        self.files = files
        self.first_line = first_line
        self.report = ParseReport()

    def write(
        self, words: Sequence[str], result: Parse | BadParse, sentence: str | None = None
    ) -> None:
        """Write the parse of the next line; write none if it is not a tree over the line's words.

        Args:
            words: the words of the line.
            result: the parse, or why there is none.
            sentence: the raw sentence that the spans of the parse refer to; None: the words are
                separated by spaces.
        """
        line = self.first_line + self.report.sentences
        self.report.sentences += 1
        self.report.words += len(words)
        lines = {HEADS: "\n", LABELS: "\n", SPANS: "\n", CONLLU: ""}
        try:
            parse = _check(words, result)
            if sentence is not None:
                _check_spans(parse, sentence)
        except BadParse as fault:
            self.report.empty[fault.reason] += 1
            if fault.reason == FAILED:
                self.report.fail(line, str(fault))
        else:
            lines[HEADS] = " ".join(map(str, parse.heads)) + "\n"
            lines[LABELS] = " ".join(parse.labels) + "\n"
            lines[SPANS] = format_spans(parse.spans) + "\n"
            if CONLLU in self.files:
                columns = words, parse.heads, parse.labels, parse.morphology, line
                where = None if sentence is None else (sentence, parse.spans)
                lines[CONLLU] = format_conllu(*columns, where)
        for kind, file in self.files.items():
            file.write(lines[kind])


def _check(words: Sequence[str], result: Parse | BadParse) -> Parse:
    if isinstance(result, BadParse):
        raise result
    if not len(result.heads) == len(result.labels) == len(words):
        raise BadParse("words differ", f"{len(result.heads)} heads for {len(words)} words")
    check_tree(result.heads)
    return result


def _check_spans(parse: Parse, sentence: str) -> None:
    if len(parse.spans) != len(parse.heads):
        raise BadParse("words differ", f"{len(parse.spans)} spans for {len(parse.heads)} words")
    check_spans(parse.spans, len(sentence))


@contextmanager
def open_writer(paths: Mapping[str, Path], first_line: int = 1) -> Iterator[ParseWriter]:
    """Open the output files, by kind (``heads``, ...), and yield a `ParseWriter` for the files."""
    with ExitStack() as stack:
        files = {
            kind: stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))
            for kind, path in paths.items()
        }
        yield ParseWriter(files, first_line)
