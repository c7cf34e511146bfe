"""The tables of a corpus's results: scores, differences to baselines, structure and costs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from .contrast import Cell
from .contrast_tables import tabulate_baselines
from .measures import NLL
from .results_file import list_provenance
from .table_rows import TableRow, index_rows, list_contrasts, say_settings
from .tables import Column, Tables, list_tables, spread

#: Names of alignments by a direction or a symmetrisation, and the one that is shown.
_ALIGNMENT, _SHOWN = re.compile(r"AER (layer \d+|fast_align) ."), " grow-diag-lilt"


def tabulate_rows(rows: Sequence[TableRow]) -> Tables:
    """Return the non-empty tables of a corpus's results, with notes: scores, differences, costs."""
    cells = [cell for row in rows for cell in row.cells]
    translation, structure = _list_scores(cells)
    measured = [row for row in rows if _has_any(row, structure)]
    compared = tabulate_baselines(list_contrasts(rows, groups={}), index_rows(rows))
    sizes = Column("seeds", [str(len(row.cells)) for row in rows])
    translations = [_name(rows), sizes, *(_average_score(rows, name) for name in translation)]
    structures = [_name(measured), *(_average_score(measured, name) for name in structure)]
    tables = [
        *list_tables(translations),
        *compared.tables,
        *list_tables(structures, [_name(rows), *_list_costs(rows)]),
    ]
    notes = [
        *_describe_spread(rows),
        *compared.notes,
        *(row.note for row in rows if row.note),
        *_describe_scores(cells),
        *_describe_trainings(cells),
    ]
    return Tables(tables, notes)


def _list_scores(cells: Iterable[Cell]) -> tuple[list[str], list[str]]:
    """Return the names of translation scores, and the names of scores of structure.

    Of the alignments of a layer, by two directions and six symmetrisations, one is enough.
    """
    names = dict.fromkeys(name for cell in cells for name in cell["scores"])
    signed = tuple({name for cell in cells for name in cell["signatures"]})
    translation = [name for name in names if name.startswith(signed)]
    others = [name for name in names if name not in translation]
    return translation, [n for n in others if not _ALIGNMENT.match(n) or n.endswith(_SHOWN)]


def _has_any(row: TableRow, scores: Iterable[str]) -> bool:
    return any(row.list_numbers(score) for score in scores)


def _name(rows: Sequence[TableRow]) -> Column:
    return Column("system", [row.name for row in rows])


def _average(
    rows: Sequence[TableRow], name: str, get: Callable[[Cell], float | None], digits: int = 1
) -> Column:
    """Return the column of the mean over seeds, with the spread.

    Args:
        rows: one for each system.
        name: the column's.
        get: returns the number of a training.
        digits: after the point.
    """
    return Column(name, [spread([*map(get, row.cells)], digits) for row in rows])


def _average_score(rows: Sequence[TableRow], name: str) -> Column:
    return _average(rows, name, lambda cell: cell["scores"].get(name))


def _list_costs(rows: Sequence[TableRow]) -> list[Column]:
    """Return the columns of training costs and of validation scores."""
    columns = [
        _average(rows, "updates", lambda cell: cell.get("updates"), 0),
        _average(rows, "minutes", _count_minutes),
        _average(rows, "updates/s", lambda cell: cell.get("updates_per_second"), 2),
        _average(rows, "valid BLEU", lambda cell: cell["valid"].get("bleu")),
        _average(rows, "valid loss", lambda cell: cell["valid"].get("loss"), 3),
    ]
    curves = [cell.get("nll_by_update", {}) for row in rows for cell in row.cells]
    if common := set.intersection(*map(set, curves)) if curves else set():
        last = max(common, key=int)  # that all trainings reached

        def get_last(cell: Cell) -> float:
            return NLL.factor * float(cell["nll_by_update"][last])

        columns.append(_average(rows, f"NLL at {last} updates", get_last, NLL.digits))
    return columns


def _count_minutes(cell: Cell) -> float | None:
    return cell["seconds"] / 60 if "seconds" in cell else None


def _describe_spread(rows: Iterable[TableRow]) -> list[str]:
    several = any(len(row.cells) > 1 for row in rows)
    return ["mean ± standard deviation (lowest–highest) over seeds"] if several else []


def _describe_scores(cells: Sequence[Cell]) -> list[str]:
    """Say how scores were computed."""
    notes = []
    for name in dict.fromkeys(name for cell in cells for name in cell["signatures"]):
        known = {cell["signatures"][name] for cell in cells if name in cell["signatures"]}
        notes += [f"{name} {signature}" for signature in sorted(known)]
    if any(name.startswith("trees ") for cell in cells for name in cell["scores"]):
        notes.append("trees: sentence F1 of the target's constituents, as in syncattn-trees")
    return notes


def _describe_trainings(cells: Sequence[Cell]) -> list[str]:
    """Describe the trainings and their hardware."""
    notes = []
    changed = {f"{name}={value}" for cell in cells for name, value in cell["overrides"].items()}
    if changed:
        notes.append(f"changed settings: {', '.join(sorted(changed))}")
    named = {(cell["system"], say_settings(cell)) for cell in cells}
    notes += [f"{name}: {settings}" for name, settings in sorted(named) if settings]
    if plugins := {cell["plugin"][:8] for cell in cells if "plugin" in cell}:
        notes.append(f"plugin: {', '.join(sorted(plugins))}")
    return [*notes, *list_provenance(cells)]
