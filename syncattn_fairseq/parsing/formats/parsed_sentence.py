"""A parser's analysis of one sentence."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Surface(NamedTuple):
    """A surface form of several words, ``first`` to before ``past``, such as German "im"."""

    form: str
    first: int
    past: int


@dataclass(frozen=True)
class Analysis:
    """The words of a sentence, and the tree if the parser found a tree.

    Attributes:
        words: as the parser writes them; they may contain any character, even spaces.
        heads: for each word the 1-based position of its head, 0 for the root; None: no tree. Not
            checked to form a tree.
        labels: the relation of each word to its head, without white space; empty: no tree.
        surface: the runs of words written as one, in order.
        text: the sentence as people write it, if the format says it.
        tags: the part of speech of each word; empty: the format has none, or is read without.
    """

    words: list[str]
    heads: list[int] | None = None
    labels: list[str] = field(default_factory=list)
    surface: list[Surface] = field(default_factory=list)
    text: str = field(default="", compare=False)
    tags: list[str] = field(default_factory=list, compare=False)

    def list_readings(self) -> list[list[Surface]]:
        """List the ways to write the sentence: with surface forms, if any, then word by word."""
        words = [Surface(word, index, index + 1) for index, word in enumerate(self.words)]
        if not self.surface:
            return [words]
        written: list[Surface] = []
        past = 0
        for form in self.surface:
            written += [*words[past : form.first], form]
            past = form.past
        return [written + words[past:], words]
