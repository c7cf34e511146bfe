"""RIBES (Isozaki et al., EMNLP 2010): how well a translation keeps the reference's word order.

The word alignment, the brevity penalty and the cases of few aligned words follow version 1.03 of
the authors' script, which is newer than the paper. By default the script lowercases; here the case
of words matters.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, islice, zip_longest

ALPHA = 0.25
"""Exponent of the unigram precision."""
BETA = 0.10
"""Exponent of the brevity penalty."""


def score_sentence(hypothesis: Sequence[str], reference: Sequence[str]) -> float:
    """Compute NKT x P1^ALPHA x BP^BETA of one tokenised sentence, from 0 to 1.

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
    """Return the share of ascending pairs, (tau + 1) / 2 if all ranks differ; 0 without pairs."""
    if len(ranks) < 2:
        return 0.0
    return sum(a < b for a, b in combinations(ranks, 2)) / math.comb(len(ranks), 2)


def align(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """Return the reference hits of the aligned hypothesis words, in hypothesis order.

    A word that occurs once on each side is aligned. For other words, longer and longer n-grams
    that end or begin with the word are tried until one occurs once on each side.
    """
    here, there = _find_positions(hypothesis), _find_positions(reference)
    ranks: list[int] = []
    for index, word in enumerate(hypothesis):
        left, right = (
            _find_counterparts(hypothesis, reference, index, step, here[word], there.get(word, []))
            for step in (-1, 1)
        )
        tries = chain.from_iterable(zip_longest(left, right))
        ranks.extend(islice((rank for rank in tries if rank is not None), 1))
    return ranks


def _find_positions(words: Sequence[str]) -> dict[str, list[int]]:
    hits = defaultdict(list)
    for index, word in enumerate(words):
        hits[word].append(index)
    return hits


def _find_counterparts(
    hypothesis: Sequence[str],
    reference: Sequence[str],
    index: int,
    step: int,
    here: list[int],
    there: list[int],
) -> Iterator[int | None]:
    """Yield a word's position in the reference for 0, 1, 2... words of context on one side.

    None while the n-gram is not unique on both sides. `here` and `there` are the hits of the
    word, which the context narrows down.
    """
    offset = 0
    while there:
        yield there[0] if len(here) == len(there) == 1 else None
        offset += step
        if not 0 <= index + offset < len(hypothesis):
            return
        neighbour = hypothesis[index + offset]
        here, there = (
            [i for i in hits if 0 <= i + offset < len(words) and words[i + offset] == neighbour]
            for words, hits in ((hypothesis, here), (reference, there))
        )
