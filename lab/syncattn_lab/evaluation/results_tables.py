"""Tables of the results of all experiments with a corpus."""

from __future__ import annotations

import re
import statistics
import textwrap
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.text_tables import escape_html

from .differences import (
    BLOCKS,
    Difference,
    compare_rows,
    describe_blocks,
    format_blocks,
    format_difference,
)
from .measures import NLL, NONE, Measure, format_p, list_compared
from .results_file import list_differing, unpack_counts

#: Columns of the table of differences, and what they are.
_COLUMNS = {
    "Δ NLL": "the difference to the baseline in validation NLL, in nats per subword: means over "
    "seeds, with Welch's 95 % interval. Lower is better",
    "p Holm": "of the difference to its left, by Welch's test over seeds, corrected by Holm's "
    "method for all comparisons in the column ({count}): do the systems differ?",
    "p sentences": "of the difference in BLEU, by randomisation over sentences, all seeds "
    "together: do these trained models differ?",
    "mixed": "what differs between the trainings that are compared",
}


@dataclass(frozen=True)
class TableRow:
    """The results of one system with the same settings, and those that they are compared with."""

    name: str
    system: str
    cells: Sequence[Any]
    """One for each seed, see `.results`."""
    baseline: TableRow | None = None
    note: str = ""
    """Why it is not compared with anything."""

    def list_numbers(self, score: str) -> list[float]:
        """Return a score of all seeds that have it."""
        return [cell["scores"][score] for cell in self.cells if score in cell["scores"]]


def make_rows(
    results: Mapping[str, Any],
    systems: Sequence[str],
    seeds: Sequence[int] | None,
    baseline: Callable[[str], str],
) -> list[TableRow]:
    """Return a row for each system, or several if it was trained with several settings.

    Results are from `load_results`; ``baseline`` returns the system that one is compared with; all
    seeds are shown if none are given. `DataError`: there are no results of a system with them.
    """
    chosen = [cell for cell in results["cells"] if seeds is None or cell["seed"] in seeds]
    known = list(dict.fromkeys(cell["system"] for cell in chosen))
    if missing := [system for system in systems if system not in known]:
        which = ", ".join(missing) + (f" with seed {', '.join(map(str, seeds))}" if seeds else "")
        there = f"there are some of {', '.join(known)}" if known else "there are no others"
        raise DataError(f"no results of {which}; {there}")
    rows: dict[str, dict[tuple[str, str], TableRow]] = {}
    for system in dict.fromkeys([*systems, *map(baseline, systems)]):
        parts: dict[tuple[str, str], list[Any]] = {}
        for cell in chosen:
            if cell["system"] == system:
                parts.setdefault((_settings(cell), _own(cell)), []).append(cell)
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


def _settings(cell: Mapping[str, Any]) -> str:
    return ", ".join(sorted(f"{name}={value}" for name, value in cell["overrides"].items()))


def _own(cell: Mapping[str, Any]) -> str:
    """Return what makes a row, where its name does not say it: config, changes and plugin."""
    parts = [f"plugin {cell['plugin'][:8]}"] if "plugin" in cell else []
    config = cell.get("config", "")
    if config and cell["system"].partition(":")[0] != config:
        changes = (f"{name}={value}" for name, value in cell.get("changes", {}).items())
        parts = [":".join([config, *sorted(changes)]), *parts]
    return ", ".join(parts)


def _with_baseline(
    row: TableRow, settings: str, others: Mapping[tuple[str, str], TableRow]
) -> TableRow:
    same = [other for (changed, _), other in others.items() if changed == settings]
    if row in others.values() or not others:
        return row
    if len(same) != 1:
        names = " or ".join(one.name for one in others.values())
        note = f"{row.name}: not compared with {names}, which has other settings"
        return replace(row, note=note)
    return row if same[0].system == row.system else replace(row, baseline=same[0])


def make_tables(
    rows: Sequence[TableRow], table: Callable[[Sequence[Sequence[str]]], str], bullet: str = ""
) -> str:
    """Format tables of translation scores, structure scores and costs, and notes with a bullet."""
    tables, notes = list_tables(rows)
    return "\n\n".join([*map(table, tables), list_notes(notes, bullet)])


def list_notes(notes: Sequence[str], bullet: str) -> str:
    """Return a note on each line; items of a list, which begin with a bullet, are wrapped."""
    if not bullet:
        return "\n".join(notes)
    indent = " " * len(bullet)
    return "\n".join(
        textwrap.fill(
            bullet + escape_html(note), 120, subsequent_indent=indent, break_long_words=False
        )
        for note in notes
    )


def list_tables(rows: Sequence[TableRow]) -> tuple[list[list[list[str]]], list[str]]:
    """Return the tables of `make_tables` and their notes."""
    names = dict.fromkeys(name for row in rows for cell in row.cells for name in cell["scores"])
    signed = tuple({name for row in rows for cell in row.cells for name in cell["signatures"]})
    translation = [name for name in names if name.startswith(signed)]
    differences = {measure: compare_rows(rows, measure) for measure in list_compared()}
    tables = [
        _list_scores(rows, translation, with_seeds=True),
        _list_differences(rows, differences),
        _list_scores(rows, _structure([name for name in names if name not in translation])),
        _list_trainings(rows),
    ]
    compared = len(tables[1]) > 1  # else there is nothing to explain
    notes = _notes(rows, {*tables[1][0]} if compared else set(), differences)
    return [table for table in tables if len(table) > 1 and len(table[0]) > 1], notes


def _structure(names: Sequence[str]) -> list[str]:
    """Leave one alignment of each layer, of its two directions and six symmetrisations."""
    return [
        n
        for n in names
        if not re.match(r"AER (layer \d+|fast_align) .", n) or n.endswith(" grow-diag-lilt")
    ]


def _list_scores(
    rows: Sequence[TableRow], names: Sequence[str], with_seeds: bool = False
) -> list[list[str]]:
    """Return a table of means; ``with_seeds``: of all rows, and how many seeds each has."""
    table = [["system", *["seeds"] * with_seeds, *names]]
    for row in rows:
        means = [spread(row.list_numbers(name)) for name in names]
        if with_seeds or {*means} != {NONE}:
            table.append([row.name, *[str(len(row.cells))] * with_seeds, *means])
    return leave_out_empty(table)


def _list_differences(
    rows: Sequence[TableRow], differences: Mapping[Measure, Sequence[Difference | None]]
) -> list[list[str]]:
    compared = [row for row in rows if row.baseline]
    columns = [["system", *(row.name for row in compared)]]
    for measure, column in differences.items():
        corrected = [one.corrected if one else None for one in column]
        columns += [
            [f"Δ {measure.name}", *map(format_difference, column)],
            ["seeds as blocks", *map(format_blocks, column)],
            ["p Holm", *map(format_p, corrected)],
        ]
    columns.append(["p sentences", *map(_over_sentences, compared)])
    trained = ([*row.cells, *row.baseline.cells] for row in compared if row.baseline)
    mixed = (", ".join(list_differing(cells)) for cells in trained)
    columns.append(["mixed", *(text or NONE for text in mixed)])
    return leave_out_empty([*zip(*columns, strict=True)])


def _over_sentences(row: TableRow) -> str:
    """Return p of the seeds of which both systems have their counts."""
    from .significance import randomisation

    def counts(cells: Sequence[Any]) -> dict[Any, str]:
        return {cell["seed"]: cell["ngrams"] for cell in cells if "ngrams" in cell}

    ours, theirs = counts(row.cells), counts(row.baseline.cells if row.baseline else ())
    seeds = [seed for seed in ours if seed in theirs]
    if not seeds:
        return NONE
    with naming(row.name):
        mine, others = ([unpack_counts(x[seed]) for seed in seeds] for x in (ours, theirs))
        p = format_p(randomisation(mine, others)[1])
    if len(seeds) < len(row.cells):
        p += f" (seed{'s' * (len(seeds) > 1)} {', '.join(map(str, sorted(seeds)))})"
    return p


def _list_trainings(rows: Sequence[TableRow]) -> list[list[str]]:
    columns: dict[str, tuple[Callable[[Any], Any], int]] = {
        "updates": (lambda cell: cell.get("updates"), 0),
        "minutes": (lambda cell: cell["seconds"] / 60 if "seconds" in cell else None, 1),
        "updates/s": (lambda cell: cell.get("updates_per_second"), 2),
        "valid BLEU": (lambda cell: cell["valid"].get("bleu"), 1),
        "valid loss": (lambda cell: cell["valid"].get("loss"), 3),
    }
    measured = [cell.get("nll_by_update", {}) for row in rows for cell in row.cells]
    if common := {*measured[0]}.intersection(*measured) if measured else set():
        last = max(common, key=int)  # that all trainings reached
        columns[f"NLL at {last} updates"] = (
            lambda cell: NLL.factor * cell["nll_by_update"][last],
            NLL.digits,
        )
    table = [["system", *columns]]
    for row in rows:
        means = (spread([*map(get, row.cells)], digits) for get, digits in columns.values())
        table.append([row.name, *means])
    return leave_out_empty(table)


def leave_out_empty(table: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return a table without the columns that say nothing."""
    empty = {i for i, column in enumerate(zip(*table[1:], strict=True)) if {*column} == {NONE}}
    return [[cell for i, cell in enumerate(row) if i not in empty] for row in table]


def _notes(
    rows: Sequence[TableRow],
    columns: Set[str],
    differences: Mapping[Measure, Sequence[Difference | None]],
) -> list[str]:
    cells = [cell for row in rows for cell in row.cells]
    notes = []
    if any(len(row.cells) > 1 for row in rows):
        notes.append("mean ± standard deviation (lowest–highest) over seeds")
    if len(columns) > 1:
        tested = {
            sum(d is not None and d.corrected is not None for d in c) for c in differences.values()
        }
        count = " or ".join(map(str, sorted(tested - {0})))
        meanings = {f"Δ {measure.name}": f"the same in {measure.name}" for measure in differences}
        meanings |= _COLUMNS
        notes += [f"{k}: {v.format(count=count)}" for k, v in meanings.items() if k in columns]
        notes += [BLOCKS] if "seeds as blocks" in columns else []
        for column in differences.values():
            notes += describe_blocks(column)
    notes += [row.note for row in rows if row.note]
    for name in dict.fromkeys(name for cell in cells for name in cell["signatures"]):
        signatures = sorted({c["signatures"][name] for c in cells if name in c["signatures"]})
        notes += [f"{name} {signature}" for signature in signatures]
    if any(name.startswith("trees ") for cell in cells for name in cell["scores"]):
        notes.append("trees: sentence F1 of the target's constituents, as in syncattn-trees")
    changed = {f"{name}={value}" for cell in cells for name, value in cell["overrides"].items()}
    if changed:
        notes.append(f"changed settings: {', '.join(sorted(changed))}")
    notes += [f"hardware: {one}" for one in sorted({cell["hardware"] for cell in cells})]
    # The names of rows, each with the config and the changes that it stands for.
    named = ((cell["system"], {k: v for k, v in cell.items() if k != "plugin"}) for cell in cells)
    stand_for = {(name, settings) for name, cell in named if (settings := _own(cell))}
    notes += [f"{name}: {settings}" for name, settings in sorted(stand_for)]
    plugins = sorted({cell["plugin"][:8] for cell in cells if "plugin" in cell})
    notes += [f"plugin: {', '.join(plugins)}"] if plugins else []
    notes.append(f"commit: {', '.join(sorted({cell['commit'] for cell in cells}))}")
    return notes


def spread(numbers: Sequence[float | None], digits: int = 1) -> str:
    """Return mean, standard deviation, lowest and highest; of one value, the value.

    Numbers that are None do not count.
    """
    known = [number for number in numbers if number is not None]
    if not known:
        return NONE
    mean = f"{statistics.mean(known):.{digits}f}"
    if len({*known}) == 1:
        return mean
    deviation = f"{statistics.stdev(known):.{digits}f}"
    return f"{mean} ± {deviation} ({min(known):.{digits}f}–{max(known):.{digits}f})"
