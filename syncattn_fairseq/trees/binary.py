"""Build binary trees over words: induced from syntactic distances, and baselines to compare with.

Every bracket has the label ``LABEL``, even around a single word: ``(X (X the) (X man))``.
"""

from collections.abc import Callable, Sequence
from random import Random

from ..base.errors import DataError
from .tree import Tree

LABEL = "X"
"""Label of constituents without a category and of words without a part of speech."""


def split_by_distances(distances: Sequence[float], words: Sequence[str]) -> Tree:
    """Build a binary tree by recursive splits at the largest distance, the leftmost of equal ones.

    From LPSI (Harada and Watanabe, ACL-IJCNLP SRW 2021). ``distances[i]`` is the gap before word i;
    the first one does not matter. `DataError`: there are not as many as words, or none.
    """
    if len(distances) != len(words):
        raise DataError(f"{len(distances)} distances for {len(words)} words")
    middles: dict[tuple[int, int], int] = {}  # the largest gap inside each constituent
    falling: list[int] = []  # gaps whose constituents do not end yet
    for gap in range(1, len(words) + 1):
        while falling and (gap == len(words) or distances[falling[-1]] < distances[gap]):
            middle = falling.pop()
            middles[falling[-1] if falling else 0, gap] = middle
        falling.append(gap)
    return _split(words, lambda start, end: middles[start, end])


def branch_left(words: Sequence[str]) -> Tree:
    """Build the left-branching binary tree, whose right children are words: ``((a b) c)``."""
    return _split(words, lambda _, end: end - 1)


def branch_right(words: Sequence[str]) -> Tree:
    """Build the right-branching binary tree, whose left children are words: ``(a (b c))``."""
    return _split(words, lambda start, _: start + 1)


def split_in_the_middle(words: Sequence[str]) -> Tree:
    """Build a balanced binary tree; of an odd number of words, the right part has one more."""
    return _split(words, lambda start, end: (start + end) // 2)


def split_at_random(words: Sequence[str], generator: Random) -> Tree:
    """Build a random binary tree: the place of each split is drawn uniformly.

    Every binary tree can come out, but not all with the same probability.
    """
    return _split(words, lambda start, end: generator.randrange(start + 1, end))


def _split(words: Sequence[str], split: Callable[[int, int], int]) -> Tree:
    """Build a tree top-down. ``split(start, end)`` is the first word of the right part."""
    if not words:
        raise DataError("a tree needs at least one word")
    root = Tree(LABEL, [])
    agenda = [(root, 0, len(words))]
    while agenda:
        node, start, end = agenda.pop()
        if end - start == 1:
            node.children.append(words[start])
            continue
        middle = split(start, end)
        left, right = Tree(LABEL, []), Tree(LABEL, [])
        node.children += [left, right]
        agenda += [(right, middle, end), (left, start, middle)]
    return root
