"""The differences of systems to their baselines, ready to be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base.errors import DataError
from ..evaluation.differences import Comparison, Difference, Group, Line, Measure
from .tables import Number, Row, score_of, values


def _valid_loss(cell: Mapping[str, Mapping[str, float]]) -> float | None:
    return cell["valid"].get("loss")


_MEASURES: Sequence[tuple[Measure, Number]] = (
    (Measure("BLEU"), score_of("BLEU")),
    (Measure("validation loss", higher_is_better=False), _valid_loss),
)


def group_rows(
    rows: Sequence[Row], groups: Mapping[str, Sequence[str]]
) -> tuple[list[Measure], list[Group]]:
    """Return the measures that there are, and the systems in groups.

    Args:
        rows: from `make_rows`; those without a baseline are left out.
        groups: systems by the name of their group; a system is in the first group that has it.
            The others come last.

    Raises:
        DataError: there is nothing to compare.
    """
    found: dict[tuple[str, str], list[Line]] = {}
    names = [*groups, ""]
    compared = [row for row in rows if row.baseline]
    for name in names:
        for row in compared:
            if name == next((g for g, systems in groups.items() if row.system in systems), ""):
                assert row.baseline is not None
                line = Line(row.name, [_difference(row, number) for _, number in _MEASURES])
                found.setdefault((name, row.baseline.name), []).append(line)
    made = [
        Group(f"{name}, against {other}" if name else f"against {other}", lines)
        for (name, other), lines in found.items()
    ]
    used = [
        n for n in range(len(_MEASURES)) if any(x.differences[n] for g in made for x in g.lines)
    ]
    if not used:
        raise DataError("nothing to draw: no system has a baseline with results")
    return [_MEASURES[n][0] for n in used], [
        Group(g.title, [Line(x.name, [x.differences[n] for n in used]) for x in g.lines])
        for g in made
    ]


def compare_rows(rows: Sequence[Row]) -> list[Comparison]:
    """Compare the BLEU of all rows that have a baseline, over seeds, corrected by Holm's method."""
    from ..evaluation.significance import holm, welch

    compared = [row for row in rows if row.baseline]
    found = [_difference(row, score_of("BLEU")) for row in compared]
    p = [
        welch(values(row.cells, score_of("BLEU")), values(row.baseline.cells, score_of("BLEU")))
        if row.baseline
        else None
        for row in compared
    ]
    corrected = iter(holm([value for value in p if value is not None]))
    return [
        Comparison(
            row.name,
            row.baseline.name,
            difference.mean,
            None if value is None else next(corrected),
        )
        for row, difference, value in zip(compared, found, p, strict=True)
        if row.baseline and difference
    ]


def _difference(row: Row, number: Number) -> Difference | None:
    assert row.baseline is not None
    return Difference.of(values(row.cells, number), values(row.baseline.cells, number))
