"""Find the subwords and words of many lines at once, as positions in one array of characters.

This computes, for a block of sentences without a loop, what `.words` defines for one sentence.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from .words import SCHEMES, check_choice, find_word_starts

#: Whether `str.split` treats a character as white space; the last entry stands for all after it.
_IS_SPACE = np.array([chr(code).isspace() for code in range(0x3002)])
_SPACE, _NEWLINE, _AT, _MARK = (ord(character) for character in " \n@▁")


class TextBlock:
    """Lines of text split into subwords.

    Args:
        lines: without line ends.
        scheme: how subwords are written; see `.words.find_word_starts`.

    Attributes:
        subwords: (lines,) number of subwords of each line.

    Raises:
        ValueError: the scheme is unknown.
    """

    def __init__(self, lines: Sequence[str], scheme: str) -> None:
        check_choice("scheme", scheme, SCHEMES)
        self._scheme = scheme
        self._lines = lines
        text = "\n".join(["", *lines, ""])
        self._characters = np.frombuffer(text.encode("utf-32-le"), "<u4")
        self._is_space = np.take(_IS_SPACE, self._characters, mode="clip")
        edges = np.flatnonzero(self._is_space[1:] != self._is_space[:-1])
        # For each subword: the positions of its first and its last character.
        self._first, self._last = edges[::2] + 1, edges[1::2]
        newlines = np.flatnonzero(self._characters == _NEWLINE)
        # For each line: its first subword, and the one after its last.
        bounds = np.searchsorted(self._first, newlines)
        self._begins, self._ends = bounds[:-1], bounds[1:]
        self.subwords = self._ends - self._begins

    @cached_property
    def starts(self) -> np.ndarray:
        """(Subwords of all lines,) whether each begins a word, as `.words.find_word_starts`."""
        if self._scheme == "none":
            return np.full(len(self._first), True)
        if self._scheme == "subword_nmt":
            starts = np.append(True, ~self._goes_on[:-1])[: len(self._first)]
        else:
            starts = self._begins_word.copy()
            lone = starts & (self._first == self._last)
            starts[1:] &= ~lone[:-1]
            # Lone marks at the end of a line have no word after them.
            others = np.where(lone, len(lone), np.arange(len(lone)))
            next_other = np.minimum.accumulate(others[::-1])[::-1]
            starts &= next_other < np.repeat(self._ends, self.subwords)
            # Lines in which marks end subwords are rare.
            ends = (self._characters[self._last] == _MARK) & (self._first < self._last)
            for line in {*np.repeat(np.arange(len(self.subwords)), self.subwords)[ends].tolist()}:
                words = find_word_starts(self._lines[line].split(), self._scheme)
                starts[self._begins[line] : self._ends[line]] = words
        starts[self._begins[self.subwords > 0]] = True
        return starts

    @cached_property
    def words(self) -> np.ndarray:
        """(Lines,) number of words of each line."""
        before = np.append(0, np.cumsum(self.starts))
        return before[self._ends] - before[self._begins]

    def join_words(self) -> list[str]:
        """Return the words of each line, separated by one space.

        As `.words.join_subwords`, but bytes, and a U+2581 that does not begin a subword, stay.
        """
        stays = ~self._is_space
        if self._scheme == "subword_nmt":
            marks = self._last[self._goes_on]
            stays[marks] = stays[marks - 1] = False
        elif self._scheme == "sentencepiece":
            stays[self._first[self._begins_word]] = False
        follows = self.starts.copy()
        follows[self._begins[self.subwords > 0]] = False
        spaces = self._first[follows] - 1
        stays[spaces] = True
        stays |= self._characters == _NEWLINE
        characters = self._characters.copy()
        characters[spaces] = _SPACE
        return characters[stays].tobytes().decode("utf-32-le").split("\n")[1:-1]

    @cached_property
    def _goes_on(self) -> np.ndarray:
        """For each subword: does it end in ``@@``? (Before a lone ``@`` there is a space.)"""
        last, before = self._characters[self._last], self._characters[self._last - 1]
        return (last == _AT) & (before == _AT)

    @cached_property
    def _begins_word(self) -> np.ndarray:
        """For each subword: does it begin with U+2581?"""
        return self._characters[self._first] == _MARK
