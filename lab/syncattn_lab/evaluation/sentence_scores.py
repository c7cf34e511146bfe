"""Compare systems by another program's score for each sentence, such as COMET."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.numbers import read_decimal
from syncattn_fairseq.base.text import read_lines

from .score_table import list_test_columns, make_table
from .significance import Significance, compare_scores
from .tables import Tables

_COMET = re.compile(r"[^\t]*\t(?:Segment (\d{1,9})\t)?score: (\S+)")


@dataclass(frozen=True)
class SentenceScores(Significance):
    """The mean of a system's sentence scores, with a test against the baseline's mean."""

    mean: float = 0.0


def read_sentence_scores(path: str | Path) -> list[float]:
    """Read a score for each sentence: a number on each line, or the output of ``comet-score``.

    Any other content is a `DataError`.
    """
    scores: list[float] = []
    for number, line in enumerate(read_lines(path), 1):
        comet = _COMET.fullmatch(line)
        if comet and comet[1] is None:
            continue  # the system's mean
        if comet and int(comet[1]) != len(scores):
            raise DataError(
                f"{path}:{number}: expected Segment {len(scores)}, got Segment {comet[1]}; give "
                "the output of comet-score for one system"
            )
        try:
            scores.append(read_decimal(comet[2] if comet else line.strip()))
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}; write a number for each sentence") from None
    return scores


def compare_sentence_scores(
    scores: Mapping[str, Sequence[float]], baseline: str = ""
) -> dict[str, SentenceScores]:
    """Test the mean score of each system against the baseline's, if the baseline has scores."""
    # With the number of sentences, so that sums give means.
    counts = {name: np.stack([v, np.ones(len(v))], axis=1) for name, v in scores.items()}
    tests = compare_scores(counts, baseline, "", _compute_mean)
    return {n: SentenceScores(**vars(t), mean=float(np.mean(scores[n]))) for n, t in tests.items()}


def _compute_mean(totals: np.ndarray) -> np.ndarray:
    return totals[..., 0] / totals[..., 1]


def tabulate_sentence_scores(measure: str, scores: Mapping[str, SentenceScores]) -> Tables:
    """Return a table of the systems' mean scores, with their tests against the baseline."""
    columns = {
        "system": list(scores),
        measure: [f"{score.mean:.4f}" for score in scores.values()],
        **list_test_columns(list(scores.values()), digits=4),
    }
    return make_table(columns, [f"{measure}: the mean over sentences; tested as BLEU is"])
