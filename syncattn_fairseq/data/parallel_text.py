"""Parallel text on disk, ``PREFIX.en`` and ``PREFIX.de`` line by line, and filtering of pairs."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from ..base.errors import DataError
from ..base.files import replacing
from ..base.text import count_lines, find_text, read_lines

#: Why pairs are left out by the rules of Moses's ``clean-corpus-n``, in the order of the checks.
FAULTS = EMPTY, LONG, UNEVEN, EXCLUDED = (
    "a side has no words",
    "a side is longer than --max-words",
    "a side is more than --ratio times as long as the other",
    "a side is a sentence of --exclude",
)


def sides(prefix: Path, languages: Sequence[str]) -> list[Path]:
    """Return the names of both files; `DataError` if prefix and languages name no two files."""
    first, second = languages
    if first == second or "/" in first + second:
        raise DataError(f"languages {first} and {second}: give two codes, such as en and de")
    if prefix.name in ("", ".."):
        raise DataError(
            f"{prefix}: is a folder; give the common beginning of the two files' names, such as "
            f"{prefix / 'train'}"
        )
    return [prefix.with_name(f"{prefix.name}.{language}") for language in languages]


def find_sides(prefix: Path, languages: Sequence[str]) -> list[Path]:
    """Return the paths of both sides of a text, compressed or not."""
    return [find_text(path) for path in sides(prefix, languages)]


def read_pairs(prefix: Path, languages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of two files; both must have the same number of lines (`count_lines`)."""
    paths = find_sides(prefix, languages)
    number = 0
    try:
        for pair in zip(*map(read_lines, paths), strict=True):
            number += 1
            yield pair
    except ValueError as error:
        if not isinstance(error, DataError):
            count_lines(*paths)  # it says which is shorter
        raise
    if not number:
        count_lines(*paths)


class PairWriter:
    """Writes pairs into two open files."""

    def __init__(self, source: TextIO, target: TextIO) -> None:
        self._source, self._target = source, target

    def write(self, source: str, target: str) -> None:
        """Write a pair of lines without line ends."""
        self._source.write(source + "\n")
        self._target.write(target + "\n")


@contextmanager
def write_pairs(prefixes: Sequence[Path], languages: Sequence[str]) -> Iterator[list[PairWriter]]:
    """Yield a writer for each prefix; all files appear if the block succeeds, otherwise none.

    Missing folders are created.
    """
    outputs = [sides(prefix, languages) for prefix in prefixes]
    with ExitStack() as renaming, ExitStack() as closing:
        writers = []
        for paths in outputs:
            paths[0].parent.mkdir(parents=True, exist_ok=True)
            temporary = [renaming.enter_context(replacing(path)) for path in paths]
            files = [closing.enter_context(path.open("w", encoding="utf-8")) for path in temporary]
            writers.append(PairWriter(*files))
        yield writers


def simplify(sentence: str) -> str:
    """Return an equal key for sentences with differences only in case or spaces."""
    return "".join(sentence.split()).lower()


def find_fault(source: int, target: int, max_words: int | None, ratio: float | None) -> str | None:
    """Return the reason for rejecting a pair of sentences, or None to keep the pair.

    Args:
        source: the number of its words.
        target: that of the other side.
        max_words: the most words of a side; None: any number.
        ratio: how many times longer than the other a side may be; None: any number.
    """
    shorter, longer = sorted((source, target))
    if shorter == 0:
        return EMPTY
    if max_words is not None and longer > max_words:
        return LONG
    if ratio is not None and longer / shorter > ratio:
        return UNEVEN
    return None
