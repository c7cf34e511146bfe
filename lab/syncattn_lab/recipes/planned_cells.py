"""The results of the systems in a plan, from the results files of several corpora."""

from collections.abc import Mapping
from typing import Any

from syncattn_fairseq.base.errors import DataError

from ..evaluation.contrast import Cell, Cells
from .plan import Plan


def index_cells(
    plan: Plan, results: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]] | None = None
) -> Cells:
    """Return the results of all systems by their name in the plan and by seed.

    Args:
        plan: gives the names of systems with settings.
        results: the results of the plan's own corpus, from `load_results`.
        others: the results of other corpora, by the corpus's name; their systems are called
            ``CORPUS/SYSTEM``.

    Raises:
        DataError: a training is not the planned one, since a setting was changed for all systems.
    """
    cells: dict[str, dict[int, Cell]] = {}
    for corpus, document in {"": results, **(others or {})}.items():
        for cell in document["cells"]:
            if cell["overrides"]:
                changed = ", ".join(f"{k}={v}" for k, v in cell["overrides"].items())
                raise DataError(
                    f"{cell['system']}, seed {cell['seed']}: was trained with {changed}, which "
                    "the plan does not have; keep the results of the plan in a separate file"
                )
            system = f"{corpus}/{cell['system']}" if corpus else cell["system"]
            cells.setdefault(system, {})[cell["seed"]] = cell
    known = {name: cells[system] for name, system in plan.names.items() if system in cells}
    return cells | known
