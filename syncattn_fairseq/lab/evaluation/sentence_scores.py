"""Compare systems by a number for each sentence that another program gave, such as COMET."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...base.errors import DataError
from ...base.numbers import read_decimal
from ...base.text import read_lines
from .measures import Verdict, decide, holm
from .score_table import format_columns, list_test_columns
from .significance import measure_confidence, randomisation

_COMET = re.compile(r"[^\t]*\t(?:Segment (\d{1,9})\t)?score: (\S+)")


@dataclass(frozen=True)
class SentenceScores:
    """The mean of a system's sentences, compared with the baseline's."""

    mean: float
    confidence: float
    difference: float | None
    """The last four are those of `Significance`; None for the baseline itself, or without one."""
    p: float | None
    corrected: float | None
    verdict: Verdict | None


def read_sentence_scores(path: str | Path) -> list[float]:
    """Read a number on each line, or what ``comet-score`` printed of one system.

    Raises:
        DataError: a line is something else.
    """
    scores: list[float] = []
    for number, line in enumerate(read_lines(path), 1):
        comet = _COMET.fullmatch(line)
        if comet and comet[1] is None:
            continue  # the system's mean
        if comet and int(comet[1]) != len(scores):
            raise DataError(
                f"{path}:{number}: Segment {comet[1]} where Segment {len(scores)} should be; give "
                "the output of comet-score for one system"
            )
        try:
            scores.append(read_decimal(comet[2] if comet else line.strip()))
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}; write a number for each sentence") from None
    return scores


def compare_sentence_scores(
    scores: Mapping[str, Sequence[float]], baseline: str | None = None
) -> dict[str, SentenceScores]:
    """Test each system's mean against the baseline's.

    Args:
        scores: of each system, in the order of the sentences; at least one.
        baseline: the baseline's name; None: nothing is tested. It need not have scores.
    """
    # With the number of sentences, so that sums give means.
    counts = {name: np.stack([v, np.ones(len(v))], axis=1) for name, v in scores.items()}
    theirs = None if baseline is None else counts.get(baseline)
    tests: dict[str, tuple[float | None, float | None]] = dict.fromkeys(counts, (None, None))
    if theirs is not None:
        rest = counts.keys() - {baseline}
        tests |= {n: randomisation([counts[n]], [theirs], _compute_mean) for n in rest}
    corrected = holm([p for _, p in tests.values()])
    return {
        name: SentenceScores(
            float(np.mean(scores[name])),
            measure_confidence(counts[name], _compute_mean),
            *(difference, p, p_holm),
            None if difference is None else decide(difference, p_holm),
        )
        for (name, (difference, p)), p_holm in zip(tests.items(), corrected, strict=True)
    }


def _compute_mean(totals: np.ndarray) -> np.ndarray:
    return totals[..., 0] / totals[..., 1]


def format_sentence_scores(measure: str, scores: Mapping[str, SentenceScores]) -> str:
    """Format a table."""
    columns = {
        "system": list(scores),
        measure: [f"{score.mean:.4f}" for score in scores.values()],
        **list_test_columns(list(scores.values()), digits=4),
    }
    note = f"{measure}: the mean over sentences; tested as BLEU is"
    return f"{format_columns(columns)}\n\n{note}"
