"""Fake parses, such as random trees, as controls for models that read the source's parse.

Each function takes the marks of one sentence (:mod:`.subwords`), ``(n,)``, and a generator of
random numbers, and returns other marks, ``(n,)``. The generator's seed is computed from the
sentence alone, so that a sentence has the same control in every epoch, in every batch and at
decoding time. Another sentence's tree also depends on the other sentences of the text. Numpy does
the work, which takes a tenth of PyTorch's time for arrays of this size.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from .subwords import CONTINUATION


def shuffle_heads(marks: Tensor, generator: np.random.Generator) -> Tensor:
    """Permute the dependency heads of a sentence's words; the result need not be a tree.

    A word may keep its own head, or get the equal head of a sibling: about a quarter of the words
    of the built-in corpus do.
    """
    return _change_heads(marks, lambda heads: heads[generator.permutation(len(heads))])


def draw_heads(marks: Tensor, generator: np.random.Generator) -> Tensor:
    """Replace the dependency tree of a sentence by a random tree (:func:`draw_tree`)."""
    return _change_heads(marks, lambda heads: draw_tree(len(heads), generator))


def draw_tree(size: int, generator: np.random.Generator) -> np.ndarray:
    """Draw a random recursive tree over words: ``(size,)`` 1-based heads, 0 for the root.

    Words are attached one by one, in random order, each to a word attached before.
    """
    order = generator.permutation(size) + 1
    governors = order[(generator.random(size) * np.arange(size)).astype(int)]
    drawn = np.zeros(size, dtype=int)
    drawn[order[1:] - 1] = governors[1:]
    return drawn


def mirror_tree(marks: Tensor, generator: np.random.Generator) -> Tensor:
    """Mirror the dependency tree: the first word gets the place of the last one, and so on.

    The mirrored tree says nothing about these words, but is as local as the parse: all arcs keep
    their lengths.
    """
    return _change_heads(marks, _mirror)


def _mirror(heads: np.ndarray) -> np.ndarray:
    return np.where(heads > 0, len(heads) + 1 - heads, heads)[::-1]


class SameLength:
    """Index of the sentences of a text by their number of words.

    Args:
        words: how many words each sentence has, ``(sentences,)``; 0 without a parse.
    """

    def __init__(self, words: np.ndarray) -> None:
        self._order = words.argsort(kind="stable")
        self._sorted = words[self._order]

    def find(self, words: int) -> np.ndarray:
        """Return the indices of the sentences with ``words`` words, in ascending order."""
        begin, end = np.searchsorted(self._sorted, (words, words + 1))
        return self._order[begin:end]


def draw_other(
    index: int, alike: Sequence[int] | np.ndarray, generator: np.random.Generator
) -> int | None:
    """Draw the index of another sentence of the same length; None if there is no other.

    The text may have millions of sentences: none of them is read.

    Args:
        index: the index of the sentence itself, which is never drawn.
        alike: the indices of the sentences of the same length, in ascending order.
        generator: the generator of random numbers.
    """
    position = bisect_left(alike, index)
    own = int(index in alike[position : position + 1])
    if len(alike) == own:
        return None
    drawn = int(generator.integers(len(alike) - own))
    return int(alike[drawn + own * (drawn >= position)])


def take_tree(marks: Tensor, other: Tensor | None) -> Tensor:
    """Give the words of a sentence the tree of another sentence with as many words.

    The tree is right for other words, so that it is as local as the parse and of the same shape, at
    the end of the sentence, too (a mirrored tree is not: it turns the end of a verb-final language
    into its beginning).

    Args:
        marks: the sentence's marks.
        other: the marks of the other sentence; None: there is none, and the own tree is mirrored.
    """
    if other is None:
        return _change_heads(marks, _mirror)
    heads = other.numpy()
    return _change_heads(marks, lambda _: heads[heads != CONTINUATION])


def count_words(marks: Tensor) -> int:
    """Return the number of words of a sentence, from its binarised heads; 0 without a parse."""
    array = marks.numpy()
    heads = array[array != CONTINUATION]
    return 0 if (heads < 0).any() else len(heads)


def _change_heads(marks: Tensor, change: Callable[[np.ndarray], np.ndarray]) -> Tensor:
    """Change the heads of a sentence's words; leave a sentence without a parse as it is."""
    array = marks.numpy()
    starts = array != CONTINUATION
    heads = array[starts]
    if not len(heads) or (heads < 0).any():
        return marks
    changed = array.copy()
    changed[starts] = change(heads)
    return torch.from_numpy(changed)


CONTROLS: dict[str, Callable[[Tensor, np.random.Generator], Tensor]] = {
    "shuffled": shuffle_heads,
    "random": draw_heads,
    "mirrored": mirror_tree,
}
#: Names of the controls (fake parses) whose dependency heads do not form a tree.
NO_TREES = frozenset(["shuffled"])
