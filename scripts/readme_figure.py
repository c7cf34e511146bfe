"""Draw docs/six_contrasts.svg, the figure of the README: six planned contrasts in words.

Usage: ``python scripts/readme_figure.py docs/six_contrasts.svg``; a test compares their numbers.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from syncattn_lab.evaluation.differences import compare
from syncattn_lab.evaluation.measures import NLL
from syncattn_lab.recipes.figures import say_contrast
from syncattn_lab.recipes.plan import load_plan
from syncattn_lab.recipes.planned_cells import index_cells
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
        name: json.loads((ROOT / f"docs/results/planned/{name}.json").read_text("utf-8"))
        for name in (CORPUS, *plan.list_corpora())
    }
    cells = index_cells(plan, results.pop(CORPUS), results)
    differences = {say_contrast(one.contrast): one for one in compare(plan.contrasts, cells, NLL)}
    chosen = [differences[name] for name in CONTRASTS]
    # Without the headings of the plan.
    shown = [replace(one, contrast=replace(one.contrast, group="")) for one in chosen]
    return draw_forest({NLL: shown}, say_contrast)


if __name__ == "__main__":
    save(draw(), Path(sys.argv[1]))
