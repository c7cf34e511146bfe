"""Parses as text: heads, labels and CoNLL-U."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from ..base.errors import BadParse
from ..data.parses import check_tree
from ..trees.conllu_lines import format_conllu
from .outcome import ParseReport
from .parser import FAILED, Parse

HEADS, LABELS, CONLLU = "heads", "labels", "conllu"


class ParseWriter:
    """Writes the parses of a text's lines, and counts them.

    Heads and labels have one line per line of the text, empty if there is no parse. CoNLL-U has the
    sentences with a parse, with the line number as ``sent_id``.

    Args:
        files: the files to write, by kind: ``heads``, ``labels``, ``conllu``.
        first_line: the number of the first line.
    """

    def __init__(self, files: Mapping[str, TextIO], first_line: int = 1) -> None:
        self.files = files
        self.first_line = first_line
        self.report = ParseReport()

    def write(self, words: Sequence[str], result: Parse | BadParse) -> None:
        """Write the parse of the next line.

        Args:
            words: the line's words.
            result: the parse; written only if it is a tree.
        """
        line = self.first_line + self.report.sentences
        self.report.sentences += 1
        self.report.words += len(words)
        lines = {HEADS: "\n", LABELS: "\n", CONLLU: ""}
        try:
            parse = _check(words, result)
        except BadParse as fault:
            self.report.empty[fault.reason] += 1
            if fault.reason == FAILED:
                self.report.fail(line, str(fault))
        else:
            lines[HEADS] = " ".join(map(str, parse.heads)) + "\n"
            lines[LABELS] = " ".join(parse.labels) + "\n"
            if CONLLU in self.files:
                lines[CONLLU] = format_conllu(
                    words, parse.heads, parse.labels, parse.morphology, line
                )
        for kind, file in self.files.items():
            file.write(lines[kind])


def _check(words: Sequence[str], result: Parse | BadParse) -> Parse:
    if isinstance(result, BadParse):
        raise result
    if not len(result.heads) == len(result.labels) == len(words):
        raise BadParse("words differ", f"{len(result.heads)} heads for {len(words)} words")
    check_tree(result.heads)
    return result


@contextmanager
def open_writer(paths: Mapping[str, Path], first_line: int = 1) -> Iterator[ParseWriter]:
    """Open files for a `ParseWriter`."""
    with ExitStack() as stack:
        files = {
            kind: stack.enter_context(path.open("w", encoding="utf-8", newline="\n"))
            for kind, path in paths.items()
        }
        yield ParseWriter(files, first_line)
