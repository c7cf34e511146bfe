"""Tables of the results of all experiments with a corpus."""

from __future__ import annotations

import math
import re
import statistics
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from ...base.errors import DataError, naming
from ...base.text_tables import escape_html
from .results_file import SIGNED, unpack_counts

if TYPE_CHECKING:
    from .intervals import Interval

Number = Callable[[Any], Any]
"""Takes a number from a cell; None if the cell has none."""

_TRANSLATION = ("BLEU", "chrF", "RIBES")
#: Columns of the table of differences, and what they are.
_COLUMNS = {
    "Δ NLL": "the difference to the baseline in validation NLL, in nats per subword: means over "
    "seeds, with Welch's 95 % interval. Lower is better",
    "Δ chrF": "the same in chrF",
    "Δ BLEU": "the same in BLEU",
    "p": "of the difference to its left, by Welch's test over seeds: do the systems differ?",
    "p Holm": "corrected by Holm's method for all comparisons in the column that have a p "
    "({count})",
    "p sentences": "of the difference in BLEU, by randomisation over sentences, all seeds "
    "together: do these trained models differ?",
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


def make_rows(
    results: Mapping[str, Any],
    systems: Sequence[str],
    seeds: Sequence[int] | None,
    baseline: Callable[[str], str],
) -> list[TableRow]:
    """Return a row for each system, or several if it was trained with several settings.

    Args:
        results: from `load_results`.
        systems: those to show, in this order.
        seeds: those to include; None: all.
        baseline: returns the system that a system is compared with.

    Raises:
        DataError: there are no results of a system with these seeds.
    """
    found = [cell for cell in results["cells"] if seeds is None or cell["seed"] in seeds]
    known = list(dict.fromkeys(cell["system"] for cell in found))
    if missing := [system for system in systems if system not in known]:
        which = ", ".join(missing) + (f" with seed {', '.join(map(str, seeds))}" if seeds else "")
        there = f"there are some of {', '.join(known)}" if known else "there are no others"
        raise DataError(f"no results of {which}; {there}")
    rows: dict[str, dict[tuple[str, str], TableRow]] = {}
    for system in dict.fromkeys([*systems, *map(baseline, systems)]):
        parts: dict[tuple[str, str], list[Any]] = {}
        for cell in found:
            if cell["system"] == system:
                parts.setdefault((_settings(cell), _own(cell)), []).append(cell)
        rows[system] = {
            both: TableRow(_name(system, both) if len(parts) > 1 else system, system, cells)
            for both, cells in parts.items()
        }
    return [
        _with_baseline(row, settings, rows[baseline(system)])
        for system in systems
        for (settings, _), row in rows[system].items()
    ]


def _settings(cell: Mapping[str, Any]) -> str:
    return ", ".join(sorted(f"{name}={value}" for name, value in cell["overrides"].items()))


def _own(cell: Mapping[str, Any]) -> str:
    """Return what makes a row, where its name does not say it: config, changes and plugin."""
    made = [f"plugin {cell['plugin'][:8]}"] if "plugin" in cell else []
    config = cell.get("config", "")
    if config and cell["system"].partition(":")[0] != config:
        changes = (f"{name}={value}" for name, value in cell.get("changes", {}).items())
        made = [":".join([config, *sorted(changes)]), *made]
    return ", ".join(made)


def _name(system: str, settings: tuple[str, str]) -> str:
    shown = ", ".join(filter(None, settings))
    return f"{system} ({shown})" if shown else system


def _with_baseline(
    row: TableRow, settings: str, others: Mapping[tuple[str, str], TableRow]
) -> TableRow:
    """Compare a row with one of the same settings."""
    same = [other for (changed, _), other in others.items() if changed == settings]
    other = same[0] if len(same) == 1 else None
    if row in others.values():
        return row
    if other is not None and other.system != row.system:
        return TableRow(row.name, row.system, row.cells, other)
    if others and other is None:
        [*names] = (one.name for one in others.values())
        note = f"{row.name}: not compared with {' or '.join(names)}, which has other settings"
        return TableRow(row.name, row.system, row.cells, note=note)
    return row


def make_tables(
    rows: Sequence[TableRow], table: Callable[[Sequence[Sequence[str]]], str], bullet: str = ""
) -> str:
    """Format tables of translation scores, structure scores and costs, and notes.

    Args:
        rows: from `make_rows`.
        table: formats rows as a table.
        bullet: what each note begins with.
    """
    made, notes = list_tables(rows)
    return "\n\n".join([*map(table, made), list_notes(notes, bullet)])


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
    measures = list(dict.fromkeys(n for row in rows for cell in row.cells for n in cell["scores"]))
    translation = [name for name in measures if name.startswith(_TRANSLATION)]
    structure = _structure([name for name in measures if name not in translation])
    made = [_scores(rows, translation)]
    differences = _differences(rows)
    if differences:
        made.append(differences)
    if structure:
        made.append(_measured(rows, structure))
    made.append(_training(rows))
    return made, _notes(rows, differences)


def _structure(names: Sequence[str]) -> list[str]:
    """Keep one alignment of each layer, of its two directions and six symmetrisations."""
    return [
        n
        for n in names
        if not re.match(r"AER (layer \d+|fast_align) .", n) or n.endswith(" grow-diag-lilt")
    ]


def _scores(rows: Sequence[TableRow], measures: Sequence[str]) -> list[list[str]]:
    made = [["system", "seeds", *measures]]
    for row in rows:
        shown = (spread(values(row.cells, score_of(measure))) for measure in measures)
        made.append([row.name, str(len(row.cells)), *shown])
    return _without_empty_columns(made)


def _differences(rows: Sequence[TableRow]) -> list[list[str]]:
    """Return the table of differences to the baselines; empty if there are none."""
    compared = [row for row in rows if row.baseline]
    parts = [[[row.name] for row in compared]]
    parts += [_compare(compared, number, digits) for number, digits in MEASURES.values()]
    parts.append([[_over_sentences(row)] for row in compared])
    columns = [column for name in MEASURES for column in (f"Δ {name}", "p", "p Holm")]
    made = [list(chain(*line)) for line in zip(*parts, strict=True)]
    table = _without_empty_columns([["system", *columns, "p sentences"], *made])
    return table if len(table) > 1 and len(table[0]) > 1 else []


def _over_sentences(row: TableRow) -> str:
    """Return p of the seeds of which both systems have their counts."""
    from .significance import randomisation

    def counts(cells: Sequence[Any]) -> dict[Any, str]:
        return {cell["seed"]: cell["ngrams"] for cell in cells if "ngrams" in cell}

    ours, theirs = counts(row.cells), counts(row.baseline.cells if row.baseline else ())
    seeds = [seed for seed in ours if seed in theirs]
    if not seeds:
        return "–"
    with naming(row.name):
        pair = [[unpack_counts(side[seed]) for seed in seeds] for side in (ours, theirs)]
        p = format_p(randomisation(*pair)[1])
    if len(seeds) < len(row.cells):
        p += f" (seed{'s' * (len(seeds) > 1)} {', '.join(map(str, sorted(seeds)))})"
    return p


def _compare(rows: Sequence[TableRow], number: Number, digits: int) -> list[list[str]]:
    """Return each row's difference to its baseline, its p by Welch's test, and its Holm's p."""
    tests = compute_p(rows, number)
    several = sum(p is not None for p, _ in tests) > 1
    return [
        [
            show_difference(*pair_values(row, number), digits),
            "–" if p is None else format_p(p),
            "–" if corrected is None or not several else format_p(corrected),
        ]
        for row, (p, corrected) in zip(rows, tests, strict=True)
    ]


def pair_values(row: TableRow, number: Number) -> tuple[list[float], list[float]]:
    """Return the numbers of a row and of its baseline."""
    return values(row.cells, number), values(row.baseline.cells if row.baseline else (), number)


def compute_p(rows: Sequence[TableRow], number: Number) -> list[tuple[float | None, float | None]]:
    """Test rows against their baselines.

    Returns:
        For each row its p, by Welch's test over seeds, and that corrected by Holm's method for all
        rows; None if it cannot be tested.
    """
    from .intervals import welch
    from .significance import holm

    found = [welch(*pair_values(row, number)) for row in rows]
    corrected = iter(holm([p for p in found if p is not None]))
    return [(p, None if p is None else next(corrected)) for p in found]


def show_difference(values: Sequence[float], baseline: Sequence[float], digits: int) -> str:
    """Return the difference of two means, with its 95 % interval if there are several values."""
    from .intervals import welch_interval

    if not values or not baseline:
        return "–"
    found = welch_interval(values, baseline)
    if found is None:
        return f"{statistics.mean(values) - statistics.mean(baseline):+.{digits}f}".replace(
            "-", "−"
        )
    return show_interval(found, digits)


def show_interval(found: Interval, digits: int) -> str:
    """Return a difference with its interval."""
    low, high = found.low, found.high
    shown = f"{found.difference:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"
    return shown.replace("-", "−")


def describe_power(name: str, samples: Sequence[Sequence[float]], counts: Sequence[int]) -> str:
    """Say which differences so many seeds can show; empty if no system has two seeds.

    It takes the median of the systems' standard deviations, which a single system whose trainings
    fail does not change.

    Args:
        name: of the measure.
        samples: the seeds of each system.
        counts: numbers of seeds.
    """
    from .intervals import estimate_deviations, smallest_detectable

    deviations = estimate_deviations(samples)
    if not deviations:
        return ""
    typical = statistics.median(deviations)
    shown = [f"{smallest_detectable(typical, n):.2g} with {n}" for n in counts if n > 1]
    return (
        f"{name}: standard deviation over seeds {min(deviations):.2g} to {max(deviations):.2g}, "
        f"median {typical:.2g}; with the median, differences shown with 80 % power (before "
        f"correction): {', '.join(shown)} seeds"
    )


def _measured(rows: Sequence[TableRow], measures: Sequence[str]) -> list[list[str]]:
    made = [["system", *measures]]
    for row in rows:
        shown = [spread(values(row.cells, score_of(measure))) for measure in measures]
        if {*shown} != {"–"}:
            made.append([row.name, *shown])
    return made


def _training(rows: Sequence[TableRow]) -> list[list[str]]:
    columns: dict[str, tuple[Number, int]] = {
        "updates": (lambda cell: cell.get("updates"), 0),
        "minutes": (lambda cell: cell["seconds"] / 60 if "seconds" in cell else None, 1),
        "updates/s": (lambda cell: cell.get("updates_per_second"), 2),
        "valid BLEU": (lambda cell: cell["valid"].get("bleu"), 1),
        "valid loss": (lambda cell: cell["valid"].get("loss"), 3),
    }
    made = [["system", *columns]]
    for row in rows:
        shown = (spread(values(row.cells, number), digits) for number, digits in columns.values())
        made.append([row.name, *shown])
    return _without_empty_columns(made)


def _without_empty_columns(table: Sequence[Sequence[str]]) -> list[list[str]]:
    empty = {i for i, column in enumerate(zip(*table[1:], strict=True)) if {*column} == {"–"}}
    return [[cell for i, cell in enumerate(row) if i not in empty] for row in table]


def _notes(rows: Sequence[TableRow], differences: Sequence[Sequence[str]]) -> list[str]:
    cells = [cell for row in rows for cell in row.cells]
    notes = []
    counts = sorted({len(row.cells) for row in rows if len(row.cells) > 1}, reverse=True)
    if counts:
        notes.append("mean ± standard deviation (lowest–highest) over seeds")
    if differences:
        tested = {sum(p is not None for p, _ in compute_p(rows, n)) for n, _ in MEASURES.values()}
        count = " or ".join(map(str, sorted(tested - {0})))
        shown = [(name, note) for name, note in _COLUMNS.items() if name in differences[0]]
        notes += [f"{name}: {note.format(count=count)}" for name, note in shown]
        for name, (number, _) in MEASURES.items():
            power = describe_power(name, [values(row.cells, number) for row in rows], counts)
            notes += [power] if power else []
    notes += [row.note for row in rows if row.note]
    for name in SIGNED:
        signatures = sorted({c["signatures"][name] for c in cells if name in c["signatures"]})
        notes += [f"{name} {signature}" for signature in signatures]
    if any(name.startswith("trees ") for cell in cells for name in cell["scores"]):
        notes.append("trees: sentence F1 of the target's constituents, as in syncattn-trees")
    changed = {f"{name}={value}" for cell in cells for name, value in cell["overrides"].items()}
    if changed:
        notes.append(f"changed settings: {', '.join(sorted(changed))}")
    notes += [f"hardware: {one}" for one in sorted({cell["hardware"] for cell in cells})]
    notes += [f"{name}: {made}" for name, made in _named(cells)]
    plugins = sorted({cell["plugin"][:8] for cell in cells if "plugin" in cell})
    notes += [f"plugin: {', '.join(plugins)}"] if plugins else []
    notes.append(f"commit: {', '.join(sorted({cell['commit'] for cell in cells}))}")
    return notes


def _named(cells: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the names of rows, each with the config and the changes that it stands for."""
    found = ((cell["system"], {k: v for k, v in cell.items() if k != "plugin"}) for cell in cells)
    return sorted({(name, made) for name, cell in found if (made := _own(cell))})


def spread(numbers: Sequence[float], digits: int = 1) -> str:
    """Return mean, standard deviation, lowest and highest; of one value, the value."""
    if not numbers:
        return "–"
    mean = f"{statistics.mean(numbers):.{digits}f}"
    if len(numbers) == 1 or len({*numbers}) == 1:
        return mean
    deviation = f"{statistics.stdev(numbers):.{digits}f}"
    return f"{mean} ± {deviation} ({min(numbers):.{digits}f}–{max(numbers):.{digits}f})"


def score_of(measure: str) -> Number:
    """Return a function that takes a measure, such as ``BLEU``, from a cell."""
    return lambda cell: cell["scores"].get(measure)


def nats(cell: Mapping[str, Any]) -> float | None:
    """Return the validation NLL in nats per subword; fairseq logs bits."""
    bits: float | None = cell["valid"].get("nll_loss")
    return None if bits is None else bits * math.log(2)


#: What differences are measured in, and with how many digits.
MEASURES: dict[str, tuple[Number, int]] = {
    "NLL": (nats, 3),
    "chrF": (score_of("chrF"), 1),
    "BLEU": (score_of("BLEU"), 1),
}


def values(cells: Sequence[Any], number: Number) -> list[float]:
    """Return the numbers of the cells that have them."""
    found = (number(cell) for cell in cells)
    return [value for value in found if value is not None]


def format_p(value: float) -> str:
    """Return p with three digits."""
    return "<0.001" if value < 0.0005 else f"{value:.3f}"
