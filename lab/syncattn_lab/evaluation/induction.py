"""Build trees over words from the syntactic distances of subwords that a decoder printed (LPSI)."""

from collections.abc import Sequence
from itertools import compress

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.words import find_word_starts, join_subwords
from syncattn_fairseq.trees.binary import split_by_distances
from syncattn_fairseq.trees.tree import Tree

from ..printed.decoded import DecodedSentence

PRINTED_SIDES = ("source", "hypothesis")


def induce_tree(
    sentence: DecodedSentence,
    side: str,
    scheme: str,
    layer: int | None = None,
    words: Sequence[str] | None = None,
) -> Tree | None:
    """Build a tree by splitting a sentence repeatedly where the distance is largest.

    The gap before a word is the gap before its first subword; gaps inside words do not matter.

    Args:
        sentence: printed with ``--print-distances``, in subwords.
        side: ``source`` or ``hypothesis``.
        layer: whose distances, from 1; None: the highest that has any.
        words: the original words, to restore those unknown to the model; None: join the subwords.

    Returns None for an empty sentence, or if an unknown subword hides the words.

    Raises:
        DataError: there are no such distances, or the words are not those of the sentence.
    """
    text = getattr(sentence, side).split()
    by_layer: dict[int, list[float]] = getattr(sentence, f"{side}_distances")
    if not by_layer:
        raise DataError(f"no distances of the {side}; decode with --print-distances")
    if layer is not None and layer not in by_layer:
        known = ", ".join(map(str, by_layer))
        raise DataError(f"no distances of layer {layer}; choose one of {known}")
    distances = by_layer[max(by_layer) if layer is None else layer]
    if len(distances) != len(text):
        raise DataError(
            f"{len(distances)} distances for {len(text)} subwords; leave --remove-bpe out"
        )
    gaps = list(compress(distances, find_word_starts(text, scheme)))
    plain = join_subwords(text, scheme)
    if words is not None and len(words) != len(plain):
        if "<unk>" in plain:
            return None
        raise DataError(f"{len(plain)} words, but {len(words)} in the text")
    leaves = plain if words is None else words
    return split_by_distances(gaps, leaves) if leaves else None
