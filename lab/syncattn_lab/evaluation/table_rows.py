"""The rows of a table of systems, with their baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from syncattn_fairseq.base.errors import DataError

from .contrast import Cell, Cells, Contrast


@dataclass(frozen=True)
class TableRow:
    """A row of a results table: the trainings of a system that have the same settings.

    Attributes:
        name: the system's name, with the settings of this row if the system has several rows.
        system: the name of the system.
        cells: the results of each seed, see `.results_file`.
        baseline: the row that this one is compared with; None if there is none.
        note: why this row is not compared with a baseline; else empty.
    """

    name: str
    system: str
    cells: Sequence[Cell]
    baseline: TableRow | None = None
    note: str = ""

    def list_numbers(self, score: str) -> list[float]:
        """List a score's values over the trainings with this score."""
        return [cell["scores"][score] for cell in self.cells if score in cell["scores"]]


def make_rows(
    results: Mapping[str, Any],
    systems: Sequence[str],
    seeds: Sequence[int] | None,
    baseline: Callable[[str], str],
) -> list[TableRow]:
    """Return a row for each system, or several if its trainings have different settings.

    Args:
        results: from `load_results`.
        systems: the names of the systems.
        seeds: those that are shown; None: all.
        baseline: returns the system that one is compared with.

    Raises:
        DataError: there are no results of a system with these seeds.
    """
    chosen = [cell for cell in results["cells"] if seeds is None or cell["seed"] in seeds]
    known = list(dict.fromkeys(cell["system"] for cell in chosen))
    if missing := [system for system in systems if system not in known]:
        which = ", ".join(missing) + (f" with seed {', '.join(map(str, seeds))}" if seeds else "")
        there = f"there are results of {', '.join(known)}" if known else "there are no others"
        raise DataError(f"no results of {which}; {there}")
    rows: dict[str, dict[tuple[str, str], TableRow]] = {}
    for system in dict.fromkeys([*systems, *map(baseline, systems)]):
        parts: dict[tuple[str, str], list[Cell]] = {}
        for cell in chosen:
            if cell["system"] == system:
                parts.setdefault((_say_overrides(cell), _say_own(cell)), []).append(cell)
        rows[system] = {}
        for both, cells in parts.items():
            detail = ", ".join(filter(None, both)) if len(parts) > 1 else ""
            name = f"{system} ({detail})" if detail else system
            rows[system][both] = TableRow(name, system, cells)
    return [
        _with_baseline(row, settings, rows[baseline(system)])
        for system in systems
        for (settings, _), row in rows[system].items()
    ]


def _say_overrides(cell: Cell) -> str:
    return ", ".join(sorted(f"{name}={value}" for name, value in cell["overrides"].items()))


def _say_own(cell: Cell) -> str:
    """Return the settings and the plugin of a row, unless the row's name has the settings."""
    plugin = f"plugin {cell['plugin'][:8]}" if "plugin" in cell else ""
    return ", ".join(filter(None, [say_settings(cell), plugin]))


def say_settings(cell: Cell) -> str:
    """Return a training's settings, ``CONFIG:CHANGE:...``; empty if the system's name has them."""
    config = cell.get("config", "")
    if not config or cell["system"].partition(":")[0] == config:
        return ""
    changes = (f"{name}={value}" for name, value in cell.get("changes", {}).items())
    return ":".join([config, *sorted(changes)])


def _with_baseline(
    row: TableRow, settings: str, others: Mapping[tuple[str, str], TableRow]
) -> TableRow:
    if row in others.values() or not others:
        return row
    same = [other for (changed, _), other in others.items() if changed == settings]
    if len(same) == 1:
        return replace(row, baseline=same[0])
    names = " or ".join(one.name for one in others.values())
    return replace(row, note=f"{row.name}: not compared with {names}, which has other settings")


def list_contrasts(
    rows: Sequence[TableRow], groups: Mapping[str, Sequence[str]], say: Callable[[str], str] = str
) -> list[Contrast]:
    """Return a contrast of each row with the row's baseline.

    Args:
        rows: from `make_rows`; those without a baseline are left out.
        groups: systems by the name of their group, whose order the contrasts get. A system is in
            the first that has it; those in none come last.
        say: returns what to call a system, or ``@GROUP``, in a heading.
    """
    contrasts = []
    for group in [*groups, ""]:
        title = say(f"@{group}").removeprefix("@")
        for row in rows:
            if row.baseline and _find_group(row.system, groups) == group:
                heading = f"{title}, against {say(row.baseline.name)}".removeprefix(", ")
                contrasts.append(Contrast(row.name, row.baseline.name, heading))
    return contrasts


def _find_group(system: str, groups: Mapping[str, Sequence[str]]) -> str:
    return next((group for group, systems in groups.items() if system in systems), "")


def index_rows(rows: Sequence[TableRow]) -> Cells:
    """Return the results of all rows and of their baselines, by row name and seed."""
    known = {one.name: one for row in rows for one in (row, row.baseline) if one}
    return {name: {cell["seed"]: cell for cell in row.cells} for name, row in known.items()}
