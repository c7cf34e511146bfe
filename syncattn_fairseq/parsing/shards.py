"""Shards of a text, and the files written for each shard."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple

from ..base.errors import BadParse, DataError
from ..base.files import flush, hash_file, open_file, read_json
from ..base.text import MAX_LINE, read_lines, split_lines
from .parsed_file import EMPTY
from .parser import Parse, Parser, ParserSource, Tokens
from .writer import ParseReport, open_writer

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission


#: Files of a finished shard: its report, and the SHA-256 sums of all its other files.
_REPORT, _SUMS = "report.json", "sums.json"


class Shard(NamedTuple):
    """A shard of a text file: whole lines, from byte ``begin`` to before byte ``end``.

    ``number`` counts shards from 0, ``first_line`` lines from 1; the checksum is of the bytes.
    """

    number: int
    begin: int
    end: int
    first_line: int
    lines: int
    words: int
    sha256: str

    def read(self, text: Path) -> list[str]:
        """Return the lines of the shard; raise `DataError` if the text has changed."""
        data = _read(text, self.begin, self.end)
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise DataError(
                f"{text}: the text changed while it was being parsed; run the command again"
            )
        return list(split_lines(data))

    def folder(self, shards: Path) -> Path:
        """Return the path of the folder with the shard's finished parses."""
        return shards / f"{self.number:05}"


def plan_shards(text: Path, count: int) -> tuple[list[Shard], str]:
    """Divide a text into about ``count`` parts (shards) of similar size; return the shards.

    There are fewer shards if lines are long. Lines are those of `read_lines`. Returns the text's
    checksum, too. `DataError`: the text is empty or not UTF-8.
    """
    shards: list[Shard] = []
    whole = hashlib.sha256()
    size = text.stat().st_size
    begin, line = 0, 1
    with open_file(text) as file:
        for number in range(1, count + 1):
            file.seek(max(begin, size * number // count - 1))
            if len(file.readline(4 * MAX_LINE + 1)) > 4 * MAX_LINE:
                deque(read_lines(text), maxlen=0)  # names the line
            end = file.tell()
            if end == begin:
                continue
            data = _read(text, begin, end)
            whole.update(data)
            try:
                words = [len(content.split()) for content in split_lines(data)]
            except UnicodeDecodeError:
                deque(read_lines(text), maxlen=0)  # names the line
                raise
            sha256 = hashlib.sha256(data).hexdigest()
            shards.append(Shard(len(shards), begin, end, line, len(words), sum(words), sha256))
            begin, line = end, line + len(words)
    if not shards:
        raise DataError(f"{text}: the file is empty")
    return shards, whole.hexdigest()


def _read(text: Path, begin: int, end: int) -> bytes:
    with open_file(text) as file:
        file.seek(begin)
        return file.read(end - begin)


@dataclass(frozen=True)
class ShardTask:
    """The task of parsing shards of a text into a folder, which a Slurm job can run and repeat.

    Sentences of more than ``max_words`` are not parsed; kinds of output are those of `ParseWriter`.
    The splitter is of a text as people write it, see `Parser.split`; None: its words are separated
    by white space.
    """

    text: Path
    shards: Path
    source: ParserSource
    max_words: int
    kinds: tuple[str, ...]
    splitter: str | None = None

    def __call__(self, shards: Sequence[Shard]) -> None:
        """Parse, in this process, the unfinished shards."""
        missing = [shard for shard in shards if not shard.folder(self.shards).exists()]
        parser = self.source.open(0) if missing else None
        for shard in missing:
            assert parser is not None
            self.parse(shard, parser)

    def checkpoint(self, shards: Sequence[Shard]) -> DelayedSubmission:
        """Return submitit's task after a preemption: the same task on the same shards."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, shards)

    def parse(
        self, shard: Shard, parser: Parser, progress: Callable[[int], object] = lambda words: None
    ) -> None:
        """Parse a shard and write its folder, which appears complete or not at all.

        ``progress`` is called with the number of words parsed since the last call.
        """
        lines = shard.read(self.text)
        sizes = [len(line.split()) for line in lines]
        if self.splitter is None:
            tokens: list[Tokens] = [(line.split(), []) for line in lines]
        else:
            tokens = parser.split(lines, self.splitter)
        sentences = [words for words, _ in tokens]
        results: list[Parse | BadParse | None] = [
            refuse_sentence(words, self.max_words) for words in sentences
        ]
        indices = [index for index, refused in enumerate(results) if refused is None]
        progress(sum(sizes[i] for i, refused in enumerate(results) if refused is not None))
        for index, result in parser.analyse([sentences[index] for index in indices]):
            number = indices[index]
            if isinstance(result, Parse):
                result = result._replace(words=sentences[number], spans=tokens[number][1])
            results[number] = result
            progress(sizes[number])
        folder = Path(mkdtemp(prefix=f".{shard.number:05}.", dir=self.shards))
        try:
            paths = {kind: folder / kind for kind in self.kinds}
            with open_writer(paths, shard.first_line) as writer:
                for line, words, outcome in zip(lines, sentences, results, strict=True):
                    assert outcome is not None  # parsers answer for every sentence
                    writer.write(words, outcome, line if self.splitter else None)
            (folder / _REPORT).write_text(json.dumps(vars(writer.report)))
            sums = {name: hash_file(folder / name) for name in (*self.kinds, _REPORT)}
            (folder / _SUMS).write_text(json.dumps(sums))
            for path in (*folder.iterdir(), folder):
                flush(path)
            try:
                os.rename(folder, shard.folder(self.shards))
            except OSError:
                if not shard.folder(self.shards).exists():  # else the job was started twice
                    raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def report(self, shard: Shard) -> ParseReport:
        """Return the counts (report) of sentences, words and missing parses in a finished shard."""
        return ParseReport.from_json(read_json(shard.folder(self.shards) / _REPORT))


def is_whole(shard: Shard, folder: Path, kinds: Iterable[str]) -> bool:
    """Return whether the files of a finished shard match the stored checksums."""
    own = shard.folder(folder)
    try:
        sums = {name: hash_file(own / name) for name in (*kinds, _REPORT)}
        return bool(read_json(own / _SUMS) == sums)
    except (OSError, DataError):
        return False


def refuse_sentence(words: list[str], max_words: int) -> BadParse | None:
    """Return why a sentence cannot be parsed (no words, or too many); None if it can."""
    if not words:
        return BadParse(EMPTY, "there are no words")
    if len(words) > max_words:
        return BadParse(f"more than {max_words} words", f"there are {len(words)} words")
    return None
