"""Print the means of systems over several seeds, and the lowest and highest.

Usage: ``python scripts/mean_of_seeds.py scores-1.json scores-2.json ...``, files that one of
``syncattn-score``, ``syncattn-align`` and ``syncattn-trees score`` wrote with ``--json``, each with
the same systems.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from syncattn_fairseq.evaluation.table import text_table

#: Name of a column, and where its number is.
MEASURES: dict[str, Callable[[dict[str, Any]], float]] = {
    "BLEU": lambda scores: scores["bleu"]["score"],
    "chrF": lambda scores: scores["chrf"]["score"],
    "RIBES": lambda scores: scores["ribes"]["score"],
    "UAS source": lambda scores: 100 * scores["source_attachment"]["uas"],
    "UAS target": lambda scores: 100 * scores["target_attachment"]["uas"],
    "AER": lambda scores: 100 * scores["alignment"]["aer"],
    "AER forward": lambda scores: 100 * scores["forward"]["aer"],
    "evalb F1": lambda scores: 100 * scores["evalb"]["f1"],
    "sentence F1": lambda scores: 100 * scores["sentence"]["f1"],
}


def spread(values: Sequence[float | None]) -> str:
    """Return the mean, lowest and highest, or a dash where something was not measured."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return "-"
    return f"{sum(known) / len(known):.1f} ({min(known):.1f} - {max(known):.1f})"


def measure(scores: dict[str, Any], name: str) -> float | None:
    """Return one number of one system, None if it was not measured."""
    try:
        return MEASURES[name](scores)
    except (KeyError, TypeError):  # not of this command; null in the place of the measure
        return None


def main(paths: Sequence[str]) -> None:
    """Print the table."""
    documents = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    seeds = [{**found["systems"], **found.get("baselines", {})} for found in documents]
    columns = {
        column: {system: spread([measure(s[system], column) for s in seeds]) for system in seeds[0]}
        for column in MEASURES
    }
    kept = [column for column, cells in columns.items() if set(cells.values()) != {"-"}]
    rows = [[system, *(columns[column][system] for column in kept)] for system in seeds[0]]
    print(text_table([["system", *kept], *rows]))


if __name__ == "__main__":
    main(sys.argv[1:])
