"""A parser's analysis of one sentence."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Surface(NamedTuple):
    """A surface form that stands for several words, such as German "im" for "in dem".

    They are the words from ``first`` to before ``past``, counted from 0.
    """

    form: str
    first: int
    past: int


@dataclass(frozen=True)
class Analysis:
    """A parser's analysis of a sentence: its words, and the dependency tree if there is one.

    Attributes:
        words: as the parser writes them; they may contain any character, even spaces.
        heads: for each word the 1-based position of its head, 0 for the root; None: no tree. Not
            checked to form a tree.
        labels: the relation of each word to its head, without white space; empty: no tree.
        surface: the surface forms of several words, in order.
        text: the raw sentence, if the format has it; else empty.
        tags: the part of speech of each word; empty: the format has none, or is read without.
    """

    words: list[str]
    heads: list[int] | None = None
    labels: list[str] = field(default_factory=list)
    surface: list[Surface] = field(default_factory=list)
    text: str = field(default="", compare=False)
    tags: list[str] = field(default_factory=list, compare=False)

    def list_readings(self) -> list[list[Surface]]:
        """List the sentence's word sequences: with surface forms if it has any, then word by word.

        Each sequence is a list of forms, with the words that a form stands for.
        """
        words = [Surface(word, index, index + 1) for index, word in enumerate(self.words)]
        if not self.surface:
            return [words]
        written: list[Surface] = []
        past = 0
        for form in self.surface:
            written += [*words[past : form.first], form]
            past = form.past
        return [written + words[past:], words]
