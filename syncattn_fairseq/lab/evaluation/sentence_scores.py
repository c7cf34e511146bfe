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

_EXCHANGES, _SAMPLES, _SEED = 10000, 1000, 12345
#: Differences smaller than this are due to rounding.
_ROUNDING = 1e-12
#: How many random numbers are drawn at a time.
_AT_ONCE = 2**22
_COMET = re.compile(r"[^\t]*\t(?:Segment (\d{1,9})\t)?score: (\S+)")


@dataclass(frozen=True)
class SentenceScores:
    """The mean of a system's sentences, compared with the baseline's."""

    mean: float
    confidence: float
    """Half the width of the 95 % interval of the mean, by bootstrap resampling."""
    difference: float | None
    """To the baseline's mean; None for the baseline itself, or without one."""
    p: float | None
    """Of the difference, by paired approximate randomisation."""
    corrected: float | None = None
    """p by Holm's method, corrected for all systems that are compared."""
    verdict: Verdict | None = None
    """If higher scores are better; None if nothing was tested."""


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
    theirs = None if baseline is None else scores.get(baseline)
    tests: dict[str, tuple[float, float] | None] = {
        name: None
        if theirs is None or name == baseline
        else _randomise(np.asarray(values) - np.asarray(theirs))
        for name, values in scores.items()
    }
    corrected = holm([test and test[1] for test in tests.values()])
    return {
        name: SentenceScores(
            float(np.mean(scores[name])),
            _confidence(np.asarray(scores[name])),
            test and test[0],
            test and test[1],
            p_holm,
            test and decide(test[0], p_holm),
        )
        for (name, test), p_holm in zip(tests.items(), corrected, strict=True)
    }


def _randomise(differences: np.ndarray) -> tuple[float, float]:
    """Return the mean difference, and how often random exchanges make one as large."""
    generator = np.random.default_rng(_SEED)
    mean, left, as_large = float(differences.mean()), _EXCHANGES, 0
    while left:
        rows = min(left, max(1, _AT_ONCE // len(differences)))
        signs = generator.integers(0, 2, (rows, len(differences))) * 2 - 1
        means = signs @ differences / len(differences)
        as_large += int((abs(means) >= abs(mean) - _ROUNDING).sum())
        left -= rows
    return mean, (as_large + 1) / (_EXCHANGES + 1)


def _confidence(values: np.ndarray) -> float:
    generator = np.random.default_rng(_SEED)
    size = len(values)
    means = [values[generator.integers(size, size=size)].mean() for _ in range(_SAMPLES)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(high - low) / 2


def format_sentence_scores(measure: str, scores: Mapping[str, SentenceScores]) -> str:
    """Format a table."""
    columns = {
        "system": list(scores),
        measure: [f"{score.mean:.4f}" for score in scores.values()],
        **list_test_columns(list(scores.values()), digits=4),
    }
    note = f"{measure}: the mean over sentences; tested as BLEU is"
    return f"{format_columns(columns)}\n\n{note}"
