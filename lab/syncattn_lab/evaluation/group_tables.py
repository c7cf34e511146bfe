"""Tables of shares in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from .group_scores import ALL, GroupScore
from .intervals import Interval
from .length import FEWEST
from .measures import LEVEL, NONE, Measure, format_p
from .tables import Column, Table, list_tables

#: Shares are printed in per cent.
_SHARE = Measure("share", "fraction", factor=100)
_DIGITS = _SHARE.digits + 1


def tabulate_groups(scores: Iterable[GroupScore], unit: str) -> list[Table]:
    """Return a table for each kind of groups and each measure, with a row per group and system.

    Args:
        scores: in the order of `score_groups`.
        unit: what is counted, such as ``words``.
    """
    tables = []
    for (kind, measure), each in groupby(scores, key=lambda score: (score.kind, score.measure)):
        title = measure if kind == ALL else f"{measure} by {kind}"
        tables += list_tables(_list_columns(title, [*each], unit))
    return tables


def describe_groups(scores: Sequence[GroupScore], baseline: str | None) -> list[str]:
    """Return notes on how groups were compared, and on what the columns of their tables mean."""
    notes = ["[low, high]: the 95 % interval, by bootstrap resampling of sentences"]
    tests = sum(score.p is not None and score.same_as is None for score in scores)
    if tests:
        notes += [
            f"difference: to {baseline}; p Holm: how often chance alone makes it so large, by "
            "paired approximate randomisation of sentences, corrected for all of the "
            f"{tests} tests here",
            "intervals are of one difference alone and not corrected, so that one may exclude 0 "
            "where the verdict is not known",
            f"better, worse: p Holm < {LEVEL}, for these systems as trained; other seeds may "
            "differ",
        ]
    same = {f"{s.group} by {s.kind}": " by ".join(s.same_as[::-1]) for s in scores if s.same_as}
    if same:
        named = ", ".join(f"{name} ({first})" for name, first in same.items())
        notes.append(f"the same words as another group, with one test for both: {named}")
    if any(score.interval is None for score in scores):
        notes.append(
            f"no [low, high]: the group is in fewer than {FEWEST} sentences, or has the same share "
            "in all of them"
        )
    return notes


def format_share(score: GroupScore) -> str:
    """Format a group's share as a percentage, with the confidence interval if known."""
    share = _SHARE.format(100 * score.fraction)
    if score.interval is None:
        return share
    low, high = (_SHARE.format(100 * end) for end in score.interval)
    return f"{share} [{low}, {high}]"


def format_difference(score: GroupScore) -> str:
    """Format the difference from the baseline in points, with its interval; a dash if unknown."""
    one = score.difference
    if one is None:
        return NONE
    return Interval(100 * one.difference, 100 * one.low, 100 * one.high).format(_DIGITS)


def _list_columns(title: str, scores: Sequence[GroupScore], unit: str) -> list[Column]:
    groups = [score.group for score in scores]
    shown = ["", *groups]
    names = [here if here != before else "" for here, before in zip(groups, shown, strict=False)]
    systems = [score.system for score in scores]

    def column(name: str, text: Callable[[GroupScore], str]) -> Column:
        return Column(name, [text(score) for score in scores])

    columns = [
        Column(title, names),
        column(unit, lambda score: str(score.total)),
        *([Column("system", systems)] if len({*systems}) > 1 else []),
        column("%", format_share),
        column("difference", format_difference),
        column("p Holm", lambda score: format_p(score.corrected)),
        column("verdict", lambda score: score.verdict or NONE),
    ]
    return columns
