"""Draw the figures of the study: planned.svg, scores.svg, and six_contrasts.svg of the README.

Usage: ``python -m study.figures``; a test compares the numbers of the last one.
"""

import contextlib
import io
import os
from dataclasses import replace
from typing import Any

from syncattn_lab.cli.recipe import main as run_recipe
from syncattn_lab.evaluation.differences import compare
from syncattn_lab.evaluation.measures import NLL
from syncattn_lab.recipes.figures import say_contrast
from syncattn_lab.report.forest import draw_forest
from syncattn_lab.report.picture_files import save

from .facts import ROOT, open_results

CORPUS = "multi30k_tiny_en_de_3625"
#: What ``syncattn-recipe`` draws, and of what.
FIGURES = {
    "planned": f"{CORPUS} --plan --results study/results/planned/{CORPUS}.json",
    "scores": f"{CORPUS} @nearby @gates @parsing @parents @recurrent "
    f"--results study/results/{CORPUS}.json",
}
#: The contrasts of the README's figure, in words.
CONTRASTS = (
    "the parser's trees against random trees",
    "the parser's trees against distances in the text",
    "distances in the text against the Transformer",
    "a constant decay against the Transformer",
    "a constant decay against LPSI",
    "rotary positions against LPSI",
)


def draw_six() -> dict[str, Any]:
    """Return the README's figure of six contrasts, as a Vega-Lite chart with its data."""
    results = open_results(f"planned/{CORPUS}")
    compared = compare(results.contrasts, results.known, NLL)
    differences = {say_contrast(one.contrast): one for one in compared}
    # Without the plan's headings, and without the second intervals, which need an explanation.
    shown = [
        replace(one, contrast=replace(one.contrast, group=""), blocks=None)
        for one in map(differences.__getitem__, CONTRASTS)
    ]
    return draw_forest({NLL: shown}, say_contrast)


if __name__ == "__main__":
    os.chdir(ROOT)
    save(draw_six(), ROOT / "study" / "six_contrasts.svg")
    for name, words in FIGURES.items():
        with contextlib.redirect_stdout(io.StringIO()):  # the table
            status = run_recipe([*words.split(), "--table", f"--figure=study/{name}.svg"])
        if status:
            raise SystemExit(status)
