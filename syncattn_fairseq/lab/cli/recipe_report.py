"""``syncattn-recipe --report``: a page about all systems and seeds that a recipe has trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .report import read_arguments, write_page

if TYPE_CHECKING:
    from ..recipes.table_report import TableReport
    from ..report.trainings import Trainings


def write_report(report: TableReport, page: Path, groups: Mapping[str, Sequence[str]]) -> None:
    """Write the page, and log the call that writes the same without other seeds.

    Args:
        report: what is shown.
        page: the file.
        groups: systems by the name of their group.
    """
    if not report.shown:
        return  # every training failed
    call = report.call(page)
    log = report.work / "logs" / report.experiment.corpus.name / "report.log"
    log.write_text(f"$ {call}\n", encoding="utf-8")
    several = any(len(row.cells) > 1 for row in report.rows)
    trainings = _trainings(report, groups) if several else None
    write_page(read_arguments(call.commands[0][1:]), trainings)


def _trainings(report: TableReport, groups: Mapping[str, Sequence[str]]) -> Trainings:
    from ..evaluation.differences import compare_bleu, group_rows
    from ..evaluation.results_tables import list_tables
    from ..report.forest import draw_forest
    from ..report.trainings import Trainings

    compared = compare_bleu(report.rows)
    return Trainings(
        compared,
        *list_tables(report.rows),
        draw_forest(*group_rows(report.rows, groups)) if compared else None,
        report.means("UAS source"),
        report.means("AER"),
        report.say_shown(),
    )
