"""RIBES (Isozaki et al., EMNLP 2010): how well a translation keeps the reference's word order.

The word alignment, the brevity penalty and the cases of few aligned words follow version 1.03 of
the authors' script, which is newer than the paper. By default the script lowercases; here the case
of words matters.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from operator import itemgetter

import numpy as np

ALPHA = 0.25
"""Exponent of the unigram precision in RIBES."""
BETA = 0.10
"""Exponent of the brevity penalty in RIBES."""
MAX_CONTEXT = 100
"""Most words on one side that are compared to tell equal words of a sentence apart.

The authors' script has no limit.
"""


def score_sentence(hypothesis: Sequence[str], reference: Sequence[str]) -> float:
    """Compute RIBES of a tokenised sentence: NKT x P1^ALPHA x BP^BETA, from 0 to 1.

    NKT is the normalised Kendall's tau of the aligned words, P1 their share of the hypothesis and
    BP = min(1, exp(1 - reference length / hypothesis length)). With fewer than two aligned words
    there is no order and the score is 0, except that a reference of one word needs only that one.
    An empty hypothesis or reference gives 0. If no n-gram distinguishes a repeated word from its
    copies, a sentence scores below 1 even if it equals the reference.
    """
    if not hypothesis:
        return 0.0
    ranks = align(hypothesis, reference)
    tau = 1.0 if len(ranks) == len(reference) == 1 else compute_kendall_tau(ranks)
    precision = len(ranks) / len(hypothesis)
    brevity = min(1.0, math.exp(1 - len(reference) / len(hypothesis)))
    return float(tau * precision**ALPHA * brevity**BETA)


def compute_kendall_tau(ranks: Sequence[int]) -> float:
    """Return the share of pairs of ranks in ascending order; 0 for fewer than two ranks.

    If all ranks differ, this is (tau + 1) / 2, with Kendall's tau.
    """
    if len(ranks) < 2:
        return 0.0
    return _count_ascending(ranks) / math.comb(len(ranks), 2)


def _count_ascending(ranks: Sequence[int]) -> int:
    """Return the number of ascending pairs, in a time that hardly grows faster than the ranks."""
    if len(ranks) > 2000:
        halves = ranks[: len(ranks) // 2], ranks[len(ranks) // 2 :]
        across = np.searchsorted(np.sort(halves[0]), halves[1]).sum()
        return int(across) + sum(map(_count_ascending, halves))
    earlier: list[int] = []
    ascending = 0
    for rank in ranks:
        ascending += bisect_left(earlier, rank)
        insort(earlier, rank)
    return ascending


def align(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """Return the position in the reference of each aligned hypothesis word, in hypothesis order.

    A word that occurs once on each side is aligned. For other words, longer and longer n-grams
    that end or begin with the word are tried until one occurs once on each side, up to
    `MAX_CONTEXT` more words.
    """
    found = [_find_counterparts(hypothesis, reference, step) for step in (-1, 1)]
    hits = ([side[i] for side in found if i in side] for i in range(len(hypothesis)))
    # Of as many words on both sides, those on the left count.
    return [min(each, key=itemgetter(0))[1] for each in hits if each]


def _find_counterparts(
    hypothesis: Sequence[str], reference: Sequence[str], step: int
) -> dict[int, tuple[int, int]]:
    """Return the context needed on a side of each matched word, and the reference word."""
    found = {}
    # Hits on both sides with the same words around them.
    groups = [([*range(len(hypothesis))], [*range(len(reference))])]
    for context in range(MAX_CONTEXT + 1):
        split: dict[tuple[int, str], tuple[list[int], list[int]]] = {}
        for number, hits in enumerate(groups):
            for side, words in enumerate((hypothesis, reference)):
                for index in hits[side]:
                    place = index + step * context
                    if 0 <= place < len(words):
                        split.setdefault((number, words[place]), ([], []))[side].append(index)
        groups = [(here, there) for here, there in split.values() if here and there]
        for here, there in groups:
            if len(here) == len(there) == 1:
                found[here[0]] = context, there[0]
        groups = [hits for hits in groups if len(hits[0]) + len(hits[1]) > 2]
        if not groups:
            break
    return found
