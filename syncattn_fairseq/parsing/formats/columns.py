"""Formats with one word per line, in columns, and a blank line after each sentence.

- CoNLL-U (https://universaldependencies.org/format.html): Stanza, UDPipe, spaCy, CoreNLP, others.
- CoNLL-X (Buchholz and Marsi, 2006): MaltParser and others of its time.
- EDA's own (Flannery et al., 2012) and ``eda -o conll``: columns are separated by single spaces,
  since a Japanese word may contain U+3000, the ideographic space; a root has the head -1 or 0;
  without ``--labeling``, labels are meaningless. The text must be the one that KyTea analysed.
- Stanford CoreNLP's ``-outputFormat conll``; see :mod:`.corenlp`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ...base.errors import DataError
from ...base.numbers import read_whole
from .parsed_sentence import Analysis, Surface

_TEXT = "# text = "
_NUMBER = re.compile(r"[0-9]{1,9}")
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_EMPTY_NODE = re.compile(r"[0-9]+\.[0-9]+")


@dataclass(frozen=True)
class Table:
    """A file format with a word per line, in columns; the first column numbers words from 1.

    A head below 1 means the root. If a word has no head (``_``), the sentence has no tree. A
    missing label is ``_``, and white space in a label becomes ``_``.

    Args:
        title: the format's name in errors.
        separator: the single character between columns. Words may contain any other.
        form: 0-based column of the word.
        head: 0-based column of the word's dependency head.
        label: 0-based column of the word's dependency label.
        columns: the smallest number of columns that a line may have.
        header: beginning of lines about the sentence rather than a word.
        multiword: whether there are CoNLL-U's ranges (``3-4``: the written form of words 3 and 4)
            and empty nodes (``5.1``, skipped).
        tag: 0-based column of the part of speech; None: there is none.
    """

    title: str
    separator: str
    form: int
    head: int
    label: int
    columns: int
    header: str = "#"
    multiword: bool = False
    tag: int | None = None

    def read(self, lines: Iterable[str], name: str) -> Iterator[Analysis]:
        """Yield the sentences of a file; raise `DataError` with the line for a fault in the format.

        A sentence with a header but no words is yielded, too.
        """
        for block in _cut_blocks(lines):
            yield self._analysis(block, name)

    def _analysis(self, block: list[tuple[int, str]], name: str) -> Analysis:
        words: list[str] = []
        heads: list[int | None] = []
        labels: list[str] = []
        tags: list[str] = []
        surface: list[Surface] = []
        glued: set[int] = set()  # the last words of what no space follows
        text = ""
        for number, line in block:
            location = f"{name}:{number}"
            if line.startswith(self.header):
                if self.multiword and line.startswith(_TEXT):
                    text = line.removeprefix(_TEXT).strip()
                continue
            fields = line.split(self.separator)
            if len(fields) < self.columns:
                between = "tabs" if self.separator == "\t" else "single spaces"
                raise DataError(
                    f"{location}: expected {self.columns} columns separated by {between}, got "
                    f"{line[:60]!r}; check that the file is {self.title}"
                )
            index = fields[0]
            span = _RANGE.fullmatch(index) if self.multiword else None
            if span:
                first, past = int(span[1]) - 1, int(span[2])
                covered = surface[-1].past if surface else 0
                if first != len(words) or first < covered or past <= first:
                    raise _make_order_error(location, index, words)
                surface.append(Surface(fields[self.form], first, past))
                if "SpaceAfter=No" in fields[-1].split("|"):
                    glued.add(past)
            elif not (self.multiword and _EMPTY_NODE.fullmatch(index)):
                if not _NUMBER.fullmatch(index) or int(index) != len(words) + 1:
                    raise _make_order_error(location, index, words)
                words.append(fields[self.form])
                if self.multiword and "SpaceAfter=No" in fields[-1].split("|"):
                    glued.add(len(words))
                heads.append(_read_head(location, fields[self.head]))
                label = fields[self.label] if len(fields) > self.label else ""
                labels.append("_".join(label.split()) or "_")
                if self.tag is not None:
                    tags.append(fields[self.tag])
        if surface and surface[-1].past > len(words):
            raise DataError(
                f"{location}: the sentence has {len(words)} words, but the range of the token "
                f"{surface[-1].form[:60]!r} ends at word {surface[-1].past}; correct the range"
            )
        known = [head for head in heads if head is not None]
        if len(known) < len(words):
            analysis = Analysis(words, surface=surface, tags=tags)
        else:
            analysis = Analysis(words, known, labels, surface, tags=tags)
        if self.multiword:
            units = analysis.list_readings()[0]
            joined = "".join(f"{unit.form}{' ' * (unit.past not in glued)}" for unit in units)
            analysis = replace(analysis, text=text or joined.strip())
        return analysis


def _make_order_error(location: str, index: str, words: list[str]) -> DataError:
    return DataError(
        f"{location}: expected word {len(words) + 1} of the sentence, got {index[:60]!r}; number "
        "the words from 1 and put a blank line after each sentence"
    )


def _read_head(location: str, text: str) -> int | None:
    if text in ("", "_"):
        return None
    try:
        return max(read_whole(text), 0)
    except ValueError:
        raise DataError(
            f"{location}: the head {text[:60]!r} is not a number; write 0 for the root, _ for a "
            "word without a head"
        ) from None


def _cut_blocks(lines: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
    block: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r\n")
        if line.strip(" \t"):
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


CONLLU = Table("in CoNLL-U", "\t", form=1, head=6, label=7, columns=10, multiword=True, tag=3)
CONLLX = Table("in CoNLL-X", "\t", form=1, head=6, label=7, columns=10)
EDA = Table("in EDA's format", " ", form=2, head=1, label=4, columns=4, header="ID=")
EDA_CONLL = Table("of eda -o conll", " ", form=1, head=6, label=7, columns=7)
CORENLP_CONLL = Table("of CoreNLP -outputFormat conll", "\t", form=1, head=5, label=6, columns=7)
