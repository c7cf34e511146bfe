"""Shares of right ones in groups, such as recall by label: intervals, tests and verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from syncattn_fairseq.base.errors import DataError

from .intervals import Interval
from .length import FEWEST
from .measures import Verdict, decide, holm
from .significance import randomise_each, resample

ALL = "all"
"""The name of the kind, and of its only group, that has all words or pairs."""

Counts: TypeAlias = Mapping[str, np.ndarray]
"""The numbers of right and of all items of each sentence, ``(sentences, 2)``, by group."""


@dataclass(frozen=True)
class GroupTable:
    """Each system's counts of right and of all items in groups of one kind, such as labels.

    Attributes:
        kind: what the groups are by, such as ``label``.
        measure: the name of the share of right items, such as ``recall``.
        systems: the counts of each system, by its name.
        order: the names of groups in the order of the table; None: the largest group first.
        same: by the name of a group, the kind and name of an earlier one that holds the same.
    """

    kind: str
    measure: str
    systems: Mapping[str, Counts]
    order: Sequence[str] | None = None
    same: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupScore:
    """The share of right items in a group: recall or precision of words, or accuracy of pairs.

    Attributes:
        kind: what the groups are by, such as ``label``.
        group: the name of the group.
        measure: the name of the share, such as ``recall``.
        system: the name of the system.
        right: how many items are right; a fraction, where a word that occurs twice is found once.
        total: how many items there are.
        sentences: how many sentences have an item of the group.
        fraction: ``right / total``.
        interval: the 95 % interval of the fraction, by bootstrap resampling of sentences; None if
            fewer than `FEWEST` sentences have one, or if all are alike, so that nothing varies.
        difference: fraction minus the baseline's, with its 95 % interval; None without a baseline,
            for the baseline itself, and if the group is too small in either.
        p: of the difference, by paired approximate randomisation of sentences.
        corrected: p by Holm's method, corrected for all groups, kinds, measures and systems.
        verdict: whether the system is better than the baseline.
        same_as: the kind and name of an earlier group that holds the same; both have one test.
    """

    kind: str
    group: str
    measure: str
    system: str
    right: float
    total: int
    sentences: int
    fraction: float
    interval: tuple[float, float] | None = None
    difference: Interval | None = None
    p: float | None = None
    corrected: float | None = None
    verdict: Verdict | None = None
    same_as: tuple[str, str] | None = None


def check_baseline(baseline: str | None, systems: Collection[str]) -> None:
    """Raise `DataError` if a given baseline is not among the systems."""
    if baseline is not None and baseline not in systems:
        raise DataError(f"no system is named {baseline}; choose one of {', '.join(systems)}")


def score_groups(tables: Sequence[GroupTable], baseline: str | None = None) -> list[GroupScore]:
    """Compute the share of right items in each group, and test it against the baseline's.

    Args:
        tables: what is counted, of the same sentences.
        baseline: the system that the others are tested against; None: nothing is tested.

    Returns:
        A score for each table, group and system, in this order, without empty groups. All p are
        corrected together; those of groups that hold the same count once.
    """
    scores = [score for table in tables for score in _score_table(table, baseline)]
    once = {_find_test(score): score.p for score in scores if score.same_as is None}
    corrected = dict(zip(once, holm([*once.values()]), strict=True))
    return [_judge(score, corrected[_find_test(score)]) for score in scores]


def _find_test(score: GroupScore) -> tuple[str, str, str, str]:
    """Return the key of a group's test: kind, group, measure and system."""
    return (*(score.same_as or (score.kind, score.group)), score.measure, score.system)


def _judge(score: GroupScore, corrected: float | None) -> GroupScore:
    if score.difference is None:
        return score
    verdict = decide(score.difference.difference, corrected)
    return replace(score, corrected=corrected, verdict=verdict)


def _score_table(table: GroupTable, baseline: str | None) -> list[GroupScore]:
    """Return the scores of all groups and systems; p is not corrected yet."""
    groups = _sort(table)
    if not groups:
        return []
    shape = next(rows.shape for counts in table.systems.values() for rows in counts.values())
    nothing = np.zeros(shape)
    stacks = {
        system: np.stack([counts.get(group, nothing) for group in groups], axis=1)
        for system, counts in table.systems.items()
    }
    scores = [
        score
        for system, rows in stacks.items()
        for score in _score_system(
            table, system, groups, rows, None if system == baseline else stacks.get(baseline or "")
        )
    ]
    return sorted(scores, key=lambda score: groups.index(score.group))


def _sort(table: GroupTable) -> list[str]:
    """Return the names of groups that are not empty, in order."""
    totals: Counter[str] = Counter()
    for counts in table.systems.values():
        totals.update({name: int(rows[:, 1].sum()) for name, rows in counts.items()})
    by_size = sorted(totals, key=lambda name: (-totals[name], name))
    return [name for name in table.order or by_size if totals[name]]


def _compute_fractions(totals: np.ndarray) -> np.ndarray:
    """Compute the share of each group from sums over sentences, ``(..., 2 * groups)``.

    NaN where there is nothing.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        fractions: np.ndarray = totals[..., ::2] / totals[..., 1::2]
    return fractions


def _score_system(
    table: GroupTable,
    system: str,
    groups: Sequence[str],
    rows: np.ndarray,
    baseline: np.ndarray | None,
) -> Iterator[GroupScore]:
    """Yield the scores of a system's groups from counts, ``(sentences, groups, 2)``."""
    flat = rows.reshape(len(rows), -1)
    fractions = _compute_fractions(flat.sum(0))
    sentences = (rows[..., 1] > 0).sum(0)
    samples = resample(flat, _compute_fractions)
    enough = sentences >= FEWEST
    tested = np.zeros_like(enough)
    if baseline is not None:
        theirs = baseline.reshape(flat.shape)
        compared = samples - resample(theirs, _compute_fractions)
        differences, ps = randomise_each([flat], [theirs], _compute_fractions)
        tested = enough & ((baseline[..., 1] > 0).sum(0) >= FEWEST)
    for number, group in enumerate(groups):
        right, total = rows[:, number].sum(0)
        if not total:
            continue
        score = GroupScore(
            kind=table.kind,
            group=group,
            measure=table.measure,
            system=system,
            right=float(right),
            total=int(total),
            sentences=int(sentences[number]),
            fraction=float(fractions[number]),
            same_as=table.same.get(group),
        )
        low, high = _find_ends(samples[:, number])
        if enough[number] and low < high:
            score = replace(score, interval=(low, high))
        if tested[number]:
            difference = Interval(float(differences[number]), *_find_ends(compared[:, number]))
            score = replace(score, difference=difference, p=float(ps[number]))
        yield score


def _find_ends(samples: np.ndarray) -> tuple[float, float]:
    low, high = np.nanquantile(samples, [0.025, 0.975])
    return float(low), float(high)
