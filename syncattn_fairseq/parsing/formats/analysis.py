"""One sentence as a parser has analysed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Surface(NamedTuple):
    """Words that are written as one, as German "in" and "dem" are written "im".

    Attributes:
        form: what is written.
        first: 0-based position of the first word.
        past: of the word after the last one.
    """

    form: str
    first: int
    past: int


@dataclass(frozen=True)
class Analysis:
    """The words of one sentence, and the tree if the parser gave one.

    Attributes:
        words: as the parser writes them, with any character in them, spaces too.
        heads: for each word the 1-based position of its head, 0 for the root; None: no tree.
            Nobody has checked that they are a tree.
        labels: the relation of each word to its head, without white space; empty: no tree.
        surface: the runs of words that are written as one, in order.
    """

    words: list[str]
    heads: list[int] | None = None
    labels: list[str] = field(default_factory=list)
    surface: list[Surface] = field(default_factory=list)

    def list_readings(self) -> list[list[Surface]]:
        """Return the ways to write the sentence: surface forms where there are any, then words."""
        words = [Surface(word, index, index + 1) for index, word in enumerate(self.words)]
        if not self.surface:
            return [words]
        written: list[Surface] = []
        past = 0
        for form in self.surface:
            written += [*words[past : form.first], form]
            past = form.past
        return [written + words[past:], words]
