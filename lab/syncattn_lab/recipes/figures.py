"""Forest plots of the contrasts of a recipe, with systems named in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation.contrast import Cells, Contrast
from ..evaluation.contrast_tables import compare_all
from ..evaluation.differences import compare
from ..evaluation.measures import CHRF, NLL
from ..evaluation.table_rows import TableRow, index_rows, list_contrasts
from ..report.forest import draw_forest
from .systems import say_system


def draw_contrasts(contrasts: Sequence[Contrast], cells: Cells) -> dict[str, Any]:
    """Draw a forest plot of the planned contrasts in NLL and chrF.

    `DataError`: no contrast has results of all its seeds.
    """
    found = {measure: compare(contrasts, cells, measure) for measure in (NLL, CHRF)}
    return draw_forest(found, say_contrast)


def say_contrast(contrast: Contrast) -> str:
    """Return the label of a planned contrast in figures: "A against B"."""
    return " against ".join(map(say_system, contrast.systems))


def draw_rows(rows: Sequence[TableRow], groups: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Draw a forest plot of the differences between systems and baselines, in all measures.

    Args:
        rows: the rows of the table, from `make_rows`.
        groups: systems by the name of their group; they are drawn in this order.

    Raises:
        DataError: no system has a baseline with results.
    """
    contrasts = list_contrasts(rows, groups, say_system)
    found = compare_all(contrasts, index_rows(rows))
    return draw_forest(found, lambda contrast: say_system(contrast.system))
