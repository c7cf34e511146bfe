"""Compute BLEU of short and of long sentences, by the number of words in the source."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from syncattn_fairseq.base.errors import DataError

from ..printed.sentences import PrintedSentence
from .significance import bootstrap_interval
from .translation import sum_bleu

BUCKETS = ("1-10", "11-20", "21-30", "31-40", "41-50", "51+")
"""Ranges of the number of words in the source; an empty sentence belongs to the shortest."""
FEWEST = 10
"""Fewest sentences of a bucket for which an interval is computed."""


def find_bucket(words: int) -> str:
    """Return the range in `BUCKETS` that contains a source sentence's number of words."""
    return BUCKETS[min(max(words - 1, 0) // 10, len(BUCKETS) - 1)]


@dataclass(frozen=True)
class BucketScore:
    """BLEU, from 0 to 100, of the sentences in one bucket of source length."""

    sentences: int
    bleu: float
    interval: tuple[float, float] | None = None
    """The 95 % interval of the difference from the baseline, by bootstrap over sentences.

    None without a baseline, or with fewer than `FEWEST` sentences.
    """


def score_by_length(
    counts: np.ndarray, lengths: Sequence[int], baseline: np.ndarray | None = None
) -> dict[str, BucketScore]:
    """Compute corpus BLEU of each non-empty bucket of source length, from short to long.

    Counts, perhaps also those of a baseline, are of `count_ngrams`; lengths are of the sources.
    """
    buckets = np.array([find_bucket(length) for length in lengths])
    scores = {}
    for name in BUCKETS:
        if size := int((inside := buckets == name).sum()):
            interval = None
            if baseline is not None and size >= FEWEST:
                interval = bootstrap_interval(counts[inside], baseline[inside])
            scores[name] = BucketScore(size, sum_bleu(counts[inside]).score, interval)
    return scores


def count_source_words(outputs: Iterable[Sequence[PrintedSentence]]) -> list[int]:
    """Count the words of each source sentence, in the first output that has sources.

    If an unknown subword hides the end of a word, two words count as one.

    Raises:
        DataError: no output has the sources.
    """
    for output in outputs:
        lengths = [len(sentence.source.words) for sentence in output]
        if any(lengths):
            return lengths
    raise DataError(
        "the length of the source is needed, and no output has the source; give --source"
    )
