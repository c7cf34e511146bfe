"""Compute BLEU of short and of long sentences, by the number of words in the source."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.packed import Packed
from syncattn_fairseq.data.words import detect_scheme

from ..printed.decoded import DecodedSentence
from .significance import bootstrap_interval
from .translation import sum_bleu, undo_subwords

BUCKETS = ("1-10", "11-20", "21-30", "31-40", "41-50", "51+")
"""Words of the source; an empty sentence counts as the shortest."""
FEWEST = 10
"""Fewer sentences say too little about others for an interval."""


@dataclass(frozen=True)
class BucketScore:
    """BLEU, from 0 to 100, of the sentences of one bucket."""

    sentences: int
    bleu: float
    interval: tuple[float, float] | None = None
    """The 95 % interval of the difference to the baseline, by bootstrap resampling; None without a
    baseline, or with fewer than `FEWEST` sentences."""


def score_by_length(
    counts: np.ndarray, lengths: Sequence[int], baseline: np.ndarray | None = None
) -> dict[str, BucketScore]:
    """Compute corpus BLEU of each of the `BUCKETS` that has sentences, from short to long.

    Counts, perhaps also those of a baseline, are of `count_ngrams`; lengths are of the sources.
    """
    bucket = ((np.asarray(lengths) - 1) // 10).clip(0, len(BUCKETS) - 1)
    scores = {}
    for number, name in enumerate(BUCKETS):
        if size := int((inside := bucket == number).sum()):
            interval = None
            if baseline is not None and size >= FEWEST:
                interval = bootstrap_interval(counts[inside], baseline[inside])
            scores[name] = BucketScore(size, sum_bleu(counts[inside]).score, interval)
    return scores


def count_source_words(
    outputs: Iterable[Sequence[DecodedSentence]], scheme: str | None = None
) -> list[int]:
    """Count the words of each sentence in the first output with S- lines, else `DataError`.

    If an unknown subword hides the end of a word, two words count as one.
    """
    for output in outputs:
        sources = Packed(sentence.source for sentence in output)
        if any(sources):
            words = undo_subwords(sources, scheme or detect_scheme(sources))
            return [len(text.split()) for text in words]
    raise DataError("no output has S- lines, which give the length of the source; give --source")
