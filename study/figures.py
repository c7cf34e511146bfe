"""Draw the figures of the study: planned.svg, scores.svg, pairs.svg, and the README's
six_contrasts.svg.

Usage: ``python -m study.figures``; tests compare the numbers of the last two.
"""

import contextlib
import io
import os
from dataclasses import replace
from typing import Any

from syncattn_fairseq.base.files import read_json
from syncattn_lab.cli.recipe import main as run_recipe
from syncattn_lab.evaluation.differences import compare
from syncattn_lab.evaluation.measures import NLL
from syncattn_lab.recipes.figures import say_contrast
from syncattn_lab.report import charts
from syncattn_lab.report.charts import INK, RIGHT, WRONG
from syncattn_lab.report.forest import draw_forest
from syncattn_lab.report.picture_files import save
from syncattn_lab.report.viz import alt

from .exchange_rate import BASELINE, OTHER, Cells
from .exchange_rate import RIGHT as RIGHT_TREE
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


#: The experiment of pairs.svg, and its systems in words.
PAIRS = ROOT / "study" / "results" / "exchange" / "cpu.json"
SHOWN = {
    BASELINE: "no trees",
    RIGHT_TREE: "the parser's trees",
    OTHER: "trees of other sentences",
}
#: How many pixels the systems' dots are apart, so that equal ones do not hide each other.
_APART = 14
#: So that a phone, which shrinks the figure, still shows letters of nine pixels.
_FONT = 13


def draw_pairs() -> dict[str, Any]:
    """Return the figure of NLL by the number of pairs, as a Vega-Lite chart with its data.

    Dots are seeds. A line joins the means of the system without trees, so that a difference between
    systems can be seen beside what more text gains.
    """
    cells = Cells(read_json(PAIRS))
    seeds: list[dict[str, Any]] = []
    for name, words in SHOWN.items():
        for size in filter(lambda size: cells.has(name, size), cells.sizes):
            values = cells.by_seed(name, size).tolist()
            seeds += [{"system": words, "pairs": size, "value": value} for value in values]
    names = [*SHOWN.values()]
    fonts: dict[str, Any] = {"labelFontSize": _FONT, "titleFontSize": _FONT}
    x = alt.X(
        "pairs:Q",
        title="sentence pairs of the training text",
        scale=alt.Scale(type="log", base=2, padding=50),
        axis=alt.Axis(values=cells.sizes, format=",", grid=False, **fonts),
    )
    nats = "nats per subword of the test text"
    y = alt.Y("value:Q", title=nats, scale=alt.Scale(zero=False), axis=alt.Axis(**fonts))
    legend = alt.Legend(
        title=None, orient="top-right", labelLimit=200, labelFontSize=_FONT, rowPadding=4
    )
    colours = alt.Scale(domain=names, range=[INK, RIGHT, WRONG])
    shapes = alt.Scale(domain=names, range=["circle", "square", "triangle-up"])
    every = alt.Chart(alt.NamedData("seeds"))
    layers = [
        every.transform_filter(alt.datum.system == SHOWN[BASELINE])
        .mark_line(color=INK, opacity=0.45)
        .encode(x=x, y=alt.Y("mean(value):Q", title=nats))
    ]
    for place, words in enumerate(names):
        dots = every.transform_filter(alt.datum.system == words).mark_point(
            filled=True, size=55, opacity=0.75, xOffset=_APART * place
        )
        layers.append(
            dots.encode(
                x=x,
                y=y,
                color=alt.Color("system:N", legend=legend, scale=colours),
                shape=alt.Shape("system:N", legend=legend, scale=shapes),
            )
        )
    whole: Any = alt.layer(*layers)
    key = "Lower is better. A dot is a seed; the line joins the means without trees."
    title = alt.TitleParams(key, fontWeight="normal", fontSize=_FONT)
    sized = whole.properties(width=440, height=260, title=title)
    return charts.fill(charts.dress(sized), {"seeds": seeds})


if __name__ == "__main__":
    os.chdir(ROOT)
    save(draw_pairs(), ROOT / "study" / "pairs.svg")
    save(draw_six(), ROOT / "study" / "six_contrasts.svg")
    for name, words in FIGURES.items():
        with contextlib.redirect_stdout(io.StringIO()):  # the table
            status = run_recipe([*words.split(), "--table", f"--figure=study/{name}.svg"])
        if status:
            raise SystemExit(status)
