"""Read, write and filter parallel text in two files, ``PREFIX.en`` and ``PREFIX.de``."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from ..base.errors import DataError
from ..base.files import replacing
from ..base.text import count_lines, find_text, read_lines

#: Reasons to leave out a pair by the rules of Moses's ``clean-corpus-n``, in the order of checks.
FAULTS = EMPTY, LONG, UNEVEN, EXCLUDED = (
    "a side has no words",
    "a side is longer than --max-words",
    "a side is more than --ratio times as long as the other",
    "a side is a sentence of --exclude",
)


def sides(prefix: Path, languages: Sequence[str]) -> list[Path]:
    """Return the paths of a parallel text, ``PREFIX.LANGUAGE``; raise `DataError` for bad names."""
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
    """Return the paths of both files of a parallel text, which may be compressed."""
    return [find_text(path) for path in sides(prefix, languages)]


def read_pairs(prefix: Path, languages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs of two files, which must have the same number of lines."""
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
    """Writer of sentence pairs to two open files."""

    def __init__(self, source: TextIO, target: TextIO) -> None:
        self._source, self._target = source, target

    def write(self, source: str, target: str) -> None:
        """Write a source and a target line, given without line ends."""
        self._source.write(source + "\n")
        self._target.write(target + "\n")


@contextmanager
def write_pairs(prefixes: Sequence[Path], languages: Sequence[str]) -> Iterator[list[PairWriter]]:
    """Yield a `PairWriter` for each prefix; all files appear if the block succeeds, else none.

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
    """Return a key that is equal for sentences that differ only in case or spaces."""
    return "".join(sentence.split()).lower()


def find_fault(source: int, target: int, max_words: int | None, ratio: float | None) -> str | None:
    """Return why to leave out a sentence pair, by its lengths; None to keep the pair.

    Args:
        source: the number of words of the source.
        target: the number of words of the target.
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
