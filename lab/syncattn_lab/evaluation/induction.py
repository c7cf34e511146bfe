"""Build trees over words from the syntactic distances measured by a model (LPSI)."""

from collections.abc import Sequence

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.trees.binary import split_by_distances
from syncattn_fairseq.trees.tree import Tree

from ..printed.sentences import PrintedSide


def induce_tree(side: PrintedSide, layer: int, words: Sequence[str] | None = None) -> Tree | None:
    """Build a binary tree by splitting a sentence repeatedly where the distance is largest.

    The gap before a word is the gap before its first subword; gaps inside words do not matter.

    Args:
        side: the sentence, with the distances of its subwords.
        layer: whose distances, from 1.
        words: the original words, which are the leaves; None: the words as they were printed.

    Returns:
        The tree; None for an empty sentence, or if an unknown subword hides the words.

    Raises:
        DataError: there are no such distances, or the words are not those of the sentence.
    """
    if layer not in side.distances:
        known = ", ".join(map(str, side.distances)) or "none"
        raise DataError(f"layer {layer} has no syntactic distances; layers with distances: {known}")
    if words is not None and len(words) != len(side.words):
        if side.hides_words:
            return None
        raise DataError(f"the side has {len(side.words)} words, but the text has {len(words)}")
    leaves = side.words if words is None else words
    return split_by_distances(side.list_gaps(layer), leaves) if leaves else None
