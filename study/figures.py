"""Draw docs/six_contrasts.svg, the figure of the README: six planned contrasts in words.

Usage: ``python scripts/readme_figure.py docs/six_contrasts.svg``; a test compares their numbers.
"""

import json
import sys
from pathlib import Path
from typing import Any

from syncattn_lab.evaluation.differences import Group
from syncattn_lab.recipes.contrasts import group_contrasts, index_cells
from syncattn_lab.recipes.plan import load_plan
from syncattn_lab.report.forest import draw_forest
from syncattn_lab.report.picture_files import save

ROOT = Path(__file__).parents[1]
CORPUS = "multi30k_tiny_en_de_3625"
CONTRASTS = (
    "the parser's trees against random trees",
    "the parser's trees against distances in the text",
    "distances in the text against the Transformer",
    "a constant decay against the Transformer",
    "a constant decay against LPSI",
    "rotary positions against LPSI",
)


def draw() -> dict[str, Any]:
    """Return the figure as Vega-Lite with its data."""
    plan = load_plan(ROOT / "configs" / CORPUS)
    results = {
        name: json.loads((ROOT / f"study/results/planned/{name}.json").read_text("utf-8"))
        for name in (CORPUS, *plan.list_corpora())
    }
    cells = index_cells(results.pop(CORPUS), results, plan.names)
    measures, groups = group_contrasts(plan, cells)
    lines = {line.name: line for group in groups for line in group.lines}
    return draw_forest(measures[:1], [Group("", [lines[name] for name in CONTRASTS])])


if __name__ == "__main__":
    save(draw(), Path(sys.argv[1]))
