"""Compute BLEU of short and of long sentences, by the number of words in the source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU

from ..base.errors import DataError
from ..data.words import detect_scheme
from .fairseq_output import DecodedSentence
from .translation import undo_subwords

BUCKETS = ("1-10", "11-20", "21-30", "31-40", "41-50", "51+")
"""Words of the source; an empty sentence counts as the shortest."""


@dataclass(frozen=True)
class BucketScore:
    """BLEU, from 0 to 100, of the sentences of one bucket."""

    sentences: int
    bleu: float


def score_by_length(
    translations: Sequence[str],
    references: Sequence[str],
    lengths: Sequence[int],
    tokenize: str = "13a",
) -> dict[str, BucketScore]:
    """Compute corpus BLEU of each of the `BUCKETS` that has sentences, from short to long.

    Args:
        translations: detokenised text.
        references: the same number of lines.
        lengths: number of words of each source sentence.
        tokenize: sacreBLEU's tokenizer.

    Raises:
        DataError: the numbers of sentences differ.
    """
    if not len(translations) == len(references) == len(lengths):
        raise DataError(
            f"{len(translations)} translations, {len(references)} references and {len(lengths)} "
            "source sentences; all need one line per sentence"
        )
    members: list[list[int]] = [[] for _ in BUCKETS]
    for index, length in enumerate(lengths):
        members[min(max(length - 1, 0) // 10, len(BUCKETS) - 1)].append(index)
    metric = BLEU(tokenize=tokenize, force=True)  # so that it does not repeat its warnings
    return {
        bucket: BucketScore(
            len(indices),
            metric.corpus_score(
                [translations[i] for i in indices], [[references[i] for i in indices]]
            ).score,
        )
        for bucket, indices in zip(BUCKETS, members, strict=True)
        if indices
    }


def count_source_words(
    outputs: Iterable[Sequence[DecodedSentence]], scheme: str | None = None
) -> list[int]:
    """Count the words of each source sentence in the first output that has S- lines.

    If an unknown subword hides the end of a word, two words count as one.

    Raises:
        DataError: no output has S- lines.
    """
    for output in outputs:
        sources = [sentence.source for sentence in output]
        if any(sources):
            words = undo_subwords(sources, scheme or detect_scheme(sources))
            return [len(text.split()) for text in words]
    raise DataError("no output has S- lines, which give the length of the source; give --source")
