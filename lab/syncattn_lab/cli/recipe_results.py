"""Print the tables and draw the figures of a results file, for ``syncattn-recipe``."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncattn_fairseq.base.errors import DataError, suggest
from syncattn_fairseq.cli.common import announce, colour

from ..recipes.request import Request, is_row, read_row

if TYPE_CHECKING:
    from ..evaluation.table_rows import TableRow
    from ..recipes.plan import Plan


@dataclass(frozen=True)
class ResultsView:
    """The part of a results file printed and drawn by a call of ``syncattn-recipe``.

    Without ``baseline``, each system is compared with the baseline of its paper.
    """

    request: Request
    path: Path
    baseline: str | None
    markdown: bool
    figure: Path | None

    def print_all(self, partly: bool = False) -> None:
        """Print and draw the table of results, or the contrasts of the plan if there is one.

        ``partly``: some trainings failed, so that requested results may be missing. `DataError`:
        there are no results.
        """
        if not self.path.is_file():
            raise DataError(
                f"{self.path}: no such file; run the recipe without --table first, or give the "
                "file of its results with --results"
            )
        if self.request.plan:
            self._print_plan(self.request.plan)
        else:
            self._print_table(partly)

    def check_baseline(self) -> None:
        """Raise `DataError` if the baseline has no results and is not among the systems to train.

        With a plan, which says itself what is compared, any baseline is refused.
        """
        from ..evaluation.results_file import load_results

        name, seeds = self.baseline, self.request.seeds
        if name is None:
            return
        if self.request.plan:
            raise DataError(
                f"--baseline {name}: the plan says what is compared; leave the option out"
            )
        cells = load_results(self.path)["cells"] if self.path.is_file() else []
        known = {cell["system"] for cell in cells if seeds is None or cell["seed"] in seeds}
        known |= {row.label for row in self.request.rows}
        if name not in known:
            fault = (
                "this is not one of the given systems, and not in "
                f"{self.path}{suggest(name, known)}"
            )
            raise DataError(f"--baseline {name}: {fault}")

    def _print_plan(self, plan: Plan) -> None:
        from ..evaluation.contrast_tables import tabulate_plan
        from ..evaluation.results_file import load_results
        from ..recipes.planned_cells import index_cells

        paths = {name: self.path.with_name(f"{name}.json") for name in plan.list_corpora()}
        others = {name: load_results(path) for name, path in paths.items() if path.exists()}
        cells = index_cells(plan, load_results(self.path), others)
        print(colour(tabulate_plan(plan.contrasts, cells).format(self.markdown)))
        if self.figure:
            from ..recipes.figures import draw_contrasts

            _save(draw_contrasts(plan.contrasts, cells), self.figure)

    def _print_table(self, partly: bool) -> None:
        from ..evaluation.results_tables import tabulate_rows

        rows = self.load_rows(partly)
        if not rows:
            return
        print(colour(tabulate_rows(rows).format(self.markdown)))
        if self.figure:
            from ..recipes.figures import draw_rows

            _save(draw_rows(rows, self.request.list_groups()), self.figure)
        systems = {row.system for row in rows}
        if missing := [x.label for x in self.request.rows if x.label not in systems]:
            bullet = "- " if self.markdown else ""
            text = f"{bullet}no results yet: {', '.join(missing)}"
            print(textwrap.fill(text, 118, subsequent_indent=" " * len(bullet)))

    def load_rows(self, partly: bool) -> list[TableRow]:
        """Return the table rows of the requested systems, preceded by those of their baselines.

        ``partly``: some trainings failed, so that requested results may be missing.
        """
        from ..evaluation.results_file import load_results
        from ..evaluation.table_rows import make_rows

        def find_baseline(system: str) -> str:
            return self.baseline or request.corpus.baseline(configs.get(system, system))

        request, results = self.request, load_results(self.path)
        configs = {cell["system"]: cell.get("config", cell["system"]) for cell in results["cells"]}
        known = dict.fromkeys(
            cell["system"]
            for cell in results["cells"]
            if request.seeds is None or cell["seed"] in request.seeds
        )
        named = {read_row(word).label for word in request.words if is_row(word)}
        needed = () if partly else named  # but not every system of a group
        systems = [row.label for row in request.rows] or known
        systems = [name for name in systems if name in known or name in needed]
        if not systems and not partly:
            reason = " with these seeds" if request.seeds else ""
            raise DataError(f"{self.path}: no results{reason}")
        baselines = [
            name for name in map(find_baseline, systems) if name in known or name == self.baseline
        ]
        names = list(dict.fromkeys([*baselines, *systems]))
        return make_rows(results, names, request.seeds, find_baseline)


def _save(figure: Mapping[str, Any], path: Path) -> None:
    from ..report.picture_files import save

    save(figure, path)
    announce(path, "the differences to the baseline", sys.stderr)
