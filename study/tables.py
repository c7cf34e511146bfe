"""Make the tables of the study's pages from the results.

A table is between the command that makes it and an end mark::

    <!-- syncattn-recipe CORPUS @GROUP --table --markdown --results study/results/CORPUS.json -->
    <!-- end -->

Of what ``syncattn-recipe`` prints the pages have less: neither what study/results.md says once, nor
what only the files of results need, nor columns that say the same in every row.
"""

import contextlib
import io
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from syncattn_fairseq.base.errors import DataError
from syncattn_lab.cli.recipe import main as run_recipe

from . import elsewhere, exchange_rate, likelihood, pascal_released, trials

TABLE = re.compile(
    r"^(<!-- ((?:syncattn-recipe|python -m study\.\w+)\b.*?) -->\n).*?^(<!-- end -->)$",
    re.DOTALL | re.MULTILINE,
)
#: The programs that print tables of pages.
PROGRAMS: dict[str, Callable[[Sequence[str]], int | None]] = {
    "syncattn-recipe": run_recipe,
    "python -m study.elsewhere": elsewhere.main,
    "python -m study.exchange_rate": exchange_rate.main,
    "python -m study.likelihood": likelihood.main,
    "python -m study.pascal_released": pascal_released.main,
    "python -m study.trials": trials.main,
}
#: Notes that study/results.md has once, or that the files of results have.
_SAID = re.compile(
    r"- (mean ±|differences:|Δ |p same|p sentences|mixed: the settings|seeds as blocks|"
    r"(test )?NLL: in nats|BLEU|chrF|RIBES|scores differ|hardware|commit|no results yet)"
)
#: Columns that are left out, and tables that have them.
_COLUMNS, _TABLES = re.compile("RIBES|chrF$|p sentences|BLEU, other|AER layer"), ("updates",)
#: The lowest and the highest value over seeds.
_RANGE = re.compile(r" \([\d.]+–[\d.]+\)")


def fill_in(page: str) -> str:
    """Return a page's text with each table printed anew by the command that its comment names.

    Raises:
        DataError: a command is not one of those that print tables.
        SystemExit: a table cannot be made; the command has said why.
    """
    return TABLE.sub(lambda part: part[1] + _make(part[2]) + part[3], page)


def _make(command: str) -> str:
    name = next((name for name in PROGRAMS if f"{command} ".startswith(f"{name} ")), None)
    if name is None:
        raise DataError(f"{command}: pages have tables of {', '.join(PROGRAMS)}")
    words = shlex.split(command[len(name) :])
    found = [[*map(str, sorted(Path().glob(word)))] if "*" in word else [word] for word in words]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = PROGRAMS[name](sum(found, []))
    if status:
        raise SystemExit(status)
    text = printed.getvalue().strip()
    return _abridge(text) if PROGRAMS[name] is run_recipe else f"\n{text}\n\n"


def _abridge(printed: str) -> str:
    """Return the part of a recipe's printed tables and notes shown on pages."""
    tables, notes = [], []
    for part in printed.split("\n\n"):
        if not part.startswith("|"):
            notes += re.findall(r"^- .*(?:\n  .*)*", part, re.MULTILINE)
        else:
            header, _, *body = ([*_split(_RANGE.sub("", row))] for row in part.split("\n"))
            if not {*_TABLES} & {*header}:
                tables.append([header, *body])
    if tables:
        tables[:2] = _part_estimates(_join(*tables[:2]))
    shortened = [_shorten(table) for table in tables]
    notes += [note for _, same in shortened for note in same]
    kept = "\n".join(note for note in notes if not _SAID.match(note))
    shown = [table for table, _ in shortened]
    if len(shown) > 1 and tables[1][0][0] == "contrast":
        shown.insert(1, "Estimates:")
    return "\n" + "".join(f"{part}\n\n" for part in [*shown, kept] if part)


def _split(row: str) -> list[str]:
    return re.split(r" ?(?<!\\)\| ?", row)[1:-1]


def _join(table: list[list[str]], other: list[list[str]] | None = None) -> list[list[str]]:
    """Join two tables by their first column, with a dash for missing cells."""
    header, *body = other or [table[0][:1]]
    rows = {name: cells for name, *cells in body}
    missing = ["–"] * (len(header) - 1)
    planned = table[0][0] == "contrast"
    joined = [table[0] + header[1:], *(row + rows.get(row[0], missing) for row in table[1:])]
    if not planned:
        return joined
    # The plan's verdicts are those of NLL.
    columns = [c for n, c in enumerate(zip(*joined, strict=True)) if n < 7 or c[0] != "p Holm"]
    return [[*row] for row in zip(*columns, strict=True)]


def _part_estimates(table: list[list[str]]) -> list[list[list[str]]]:
    """Return the tested contrasts of a plan and the estimates as separate tables."""
    header, *body = table
    if "verdict" not in header:
        return [table]
    verdict = header.index("verdict")
    tested = [row for row in body if row[verdict] != "estimate"]
    estimates = [row for row in body if row[verdict] == "estimate"]
    return [[header, *rows] for rows in (tested, estimates) if rows]


def _shorten(rows: list[list[str]]) -> tuple[str, list[str]]:
    """Return a table without its minor and constant columns, and notes on the constant columns."""
    header, *body = rows
    kept, notes, before = [], [], ""
    tested = " of tested contrasts" * ("verdict" in header and "estimate" not in body[0])
    delta = header.index("Δ NLL") if "Δ NLL" in header else 0
    for name, *cells in zip(header, *body, strict=True):
        # Within seeds, the pages compare NLL alone; chrF has no column of its own beside Δ chrF.
        planned = header[0] == "contrast" and name == "chrF"
        left_out = name == "seeds as blocks" and "NLL" not in before
        left_out |= bool(_COLUMNS.match(name)) and not planned
        if len(cells) > 1 and {*cells} in ({"–"}, {"estimate"}):
            continue  # a page says which contrasts are estimates
        # A row without a difference is a baseline's.
        rest = {
            c for c, row in zip(cells, body, strict=True) if name != "mixed" or row[delta] != "–"
        }
        if len(cells) > 1 and len(rest) == 1 and name in ("seeds", "mixed"):
            notes.append(f"- {name}{tested}: {rest.pop()}")
        elif not left_out:
            kept.append([name, "---", *cells])
        before = name
    lines = ["| " + " | ".join(row) + " |" for row in zip(*kept, strict=True)]
    lines[1] = "|" + "---|" * len(kept)
    return "\n".join(lines), notes
