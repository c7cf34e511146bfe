"""``syncattn-recipe --idea``: from results to the page that says whether an idea helps."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from ...base.errors import DataError
from ...base.files import replacing
from ...cli.common import announce
from ..evaluation.results_file import load_results
from ..recipes.contrasts import MeasuredPlan, group_contrasts, index_cells
from ..recipes.idea import Idea
from ..recipes.plan import Plan


def write_idea_page(idea: Idea, plan: Plan, results: Path, page: Path) -> None:
    """Write the page, once all seeds of the idea and its controls have results.

    Args:
        idea: with its controls.
        plan: their contrasts.
        results: the file of results.
        page: to be written.

    Raises:
        DataError: some of them have none.
    """
    from ..report.idea_page import Comparison, render_idea

    cells = index_cells(load_results(results), {})
    measured = MeasuredPlan(plan, cells)
    comparisons = [
        Comparison(contrast.baseline, idea.questions[contrast.baseline], difference)
        for contrast in plan.contrasts
        if (difference := measured.difference(contrast))
    ]
    known = [one.name for one in comparisons]
    if missing := [name for name in idea.questions if name not in known]:
        raise DataError(
            f"{results}: no page yet, some seeds of {idea.row.label} or {', '.join(missing)} have "
            "no results; run the recipe again without --table"
        )
    figure = group_contrasts(plan, cells)
    tables = {"Scores and costs": _list_systems(idea, cells)}
    notes = [
        "NLL: of the validation text, in nats per subword, means over seeds; p is corrected for "
        "all controls (Holm), intervals are not",
        "operations: of forward and backward of a small batch on a CPU",
        *sorted({f"commit {one['commit']}, {one['hardware']}" for one in cells.values()}),
    ]
    page.parent.mkdir(parents=True, exist_ok=True)
    with replacing(page) as temporary:
        html = render_idea(idea.row.label, comparisons, figure, tables, notes)
        temporary.write_text(html, "utf-8")
    announce(page, f"whether {idea.row.label} helps", sys.stderr)


def _list_systems(
    idea: Idea, cells: Mapping[tuple[str, int], Mapping[str, Any]]
) -> Sequence[Sequence[str]]:
    """Return the table of what each system reaches and costs."""
    from ...testing import build_model, count_operations
    from ..evaluation.measures import NONE, list_compared

    table = [["system", *(m.name for m in list_compared()), "minutes a training", "operations"]]
    for row in (idea.row, *idea.controls):
        own = [cell for (system, _), cell in cells.items() if system == row.label]
        options = idea.load_model_options(row)
        model = build_model(options.pop("_name"), **options)
        scores = [[*measure.by_seed(own).values()] for measure in list_compared()]
        table.append(
            [
                row.label,
                *(
                    f"{mean(numbers):.{measure.digits}f}" if numbers else NONE
                    for measure, numbers in zip(list_compared(), scores, strict=True)
                ),
                f"{mean(cell['seconds'] for cell in own) / 60:.1f}",
                f"{count_operations(model):,}",
            ]
        )
    return table
