"""The page about all trainings of a recipe: ``syncattn-recipe --report``."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..evaluation.results_tables import tabulate_rows
from ..recipes.figures import draw_rows
from ..recipes.table_report import TableReport
from ..report.in_words import compare_rows
from ..report.page import Trainings
from .show import make_parser
from .show_page import write_page


def write_report(report: TableReport, page: Path, groups: Mapping[str, Sequence[str]]) -> None:
    """Write the page about all trainings of a recipe, and log its ``syncattn-show`` command.

    The command shows the sentences of one seed of each system.

    Args:
        report: the contents of the page. If no training has translations, no page is written.
        page: the file to write.
        groups: systems by the name of their group, in whose order the figure draws them.
    """
    if not report.shown:
        return
    call = report.call(page)
    log = report.work / "logs" / report.corpus.name / "report.log"
    log.write_text(f"$ {call}\n", encoding="utf-8")
    trainings = None
    if any(len(row.cells) > 1 for row in report.rows):
        comparisons = compare_rows(report.rows)
        trainings = Trainings(
            comparisons,
            tabulate_rows(report.rows),
            draw_rows(report.rows, groups) if comparisons else None,
            parents=report.means("UAS source"),
            errors=report.means("AER"),
            shown=report.say_shown(),
        )
    write_page(make_parser().parse_args(call.commands[0][1:]), trainings)
