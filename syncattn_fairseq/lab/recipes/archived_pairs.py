"""Parallel text from archives, whatever its format."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from ...base.errors import DataError
from .archives import open_member
from .text_formats import PAIRS, TEXTS

#: Values of ``{role}`` in an address, for the source side and the target side.
ROLES = ("src", "ref")


def collect(
    archives: Path,
    format_name: str,
    address: str,
    languages: tuple[str, str],
    keep_empty: bool = False,
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of one text, each sentence on one line.

    Args:
        archives: folder of the archives.
        format_name: a name in `TEXTS` or `PAIRS`.
        address: the text's, ``ARCHIVE!MEMBER`` (`open_member`); ``{language}`` and ``{role}``
            are filled in if each side has its own file.
        languages: source and target.
        keep_empty: whether pairs with two empty sides are yielded as well.

    Raises:
        DataError: there are no pairs, one side has more sentences than the other, or a file is not
            in its format.
    """
    empty = True
    for pair in _read(archives, format_name, address, languages):
        empty = False
        if keep_empty or any(pair):
            yield pair
    if empty:
        raise DataError(
            f"{address}: no pairs of {' and '.join(languages)}; is {format_name} its format?"
        )


def collect_lines(archives: Path, address: str) -> list[str]:
    """Return the lines of a file, which may be in an archive (`open_member`), but no blank ones."""
    with open_member(archives, address) as file:
        return [line for line in TEXTS["plain"](file, address) if line]


def name_sides(address: str, languages: tuple[str, str]) -> list[str]:
    """Return the address of each side."""
    return [
        address.replace("{language}", language).replace("{role}", role)
        for language, role in zip(languages, ROLES, strict=True)
    ]


def _read(
    archives: Path, format_name: str, address: str, languages: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    if format_name in PAIRS:
        with open_member(archives, address) as file:
            yield from PAIRS[format_name](file, address, languages)
        return
    names = name_sides(address, languages)
    if names[0] == names[1]:
        raise DataError(f"{address}: the same file for both sides; put {{language}} into its name")
    read = TEXTS[format_name]
    with open_member(archives, names[0]) as first, open_member(archives, names[1]) as second:
        sources, targets = read(first, names[0]), read(second, names[1])
        for number, (source, target) in enumerate(zip_longest(sources, targets)):
            if source is None or target is None:
                counts = (
                    number + (sentence is not None) + sum(1 for _ in rest)
                    for sentence, rest in ((source, sources), (target, targets))
                )
                have = " but ".join(f"{n} in {name}" for name, n in zip(names, counts, strict=True))
                raise DataError(f"the sides differ in length: {have}; fetch the files again")
            yield source, target
