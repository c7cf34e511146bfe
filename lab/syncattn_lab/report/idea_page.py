"""Render the page about whether an idea helps, a self-contained HTML file without scripts."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from ..evaluation.differences import Difference
from ..evaluation.measures import format_p
from .viz import jinja2, markupsafe, vl_convert

_SAYS = {
    "better": "better than",
    "worse": "worse than",
    "the same": "the same as",
    "not known": "not shown to differ from",
}


def say_difference(one: Difference) -> str:
    """Return a sentence on how an idea and a control differ in NLL."""
    idea, control = one.contrast.systems
    text = f"{idea} is {_SAYS[one.verdict]} {control}: {one.format()} nats per subword"
    return f"{text}." if one.p is None else f"{text}, p {format_p(one.p)}."  # None: nothing varies


def sum_up(differences: Sequence[Difference]) -> str:
    """Return a sentence on whether an idea helps; the first control is the plain system."""
    plain, *others = differences
    idea = plain.contrast.system
    if plain.verdict != "better":
        return f"{idea} is {_SAYS[plain.verdict]} a plain Transformer."
    left = [one.contrast.baseline for one in others if one.verdict != "better"]
    if left:
        names = ", ".join(left)
        return f"{idea} helps, but it is not shown to be better than {names}, which may be why."
    return f"{idea} helps, and none of its controls does as much."


def say_power(differences: Sequence[Difference]) -> str:
    """Return a sentence on the least difference in NLL that the seeds can show; may be empty."""
    blocks = [one.blocks for one in differences if one.blocks]
    if not blocks:
        return ""
    least = max(each.detectable(len(differences)) for each in blocks)
    return f"So many seeds show a difference of {least:.3f} with 80 % power, after correction."


def render_idea(
    differences: Sequence[Difference],
    questions: Mapping[str, str],
    figure: dict[str, Any],
    tables: Mapping[str, Sequence[Sequence[str]]],
    notes: Sequence[str],
) -> str:
    """Return the HTML of the page about an idea.

    Args:
        differences: the difference in NLL to each control, the plain system first.
        questions: the question that each control answers, by the name of the control.
        figure: the Vega-Lite specification of a figure of the differences, with its data.
        tables: rows of each table by its heading; the first row has the names of the columns.
        notes: notes on the trainings and the measures, a line each.
    """
    folder = files(__package__) / "page"
    svg: Any = vl_convert.vegalite_to_svg(figure)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string((folder / "idea.html").read_text("utf-8")).render(
        idea=differences[0].contrast.system,
        summary=sum_up(differences),
        answers=[(questions[one.contrast.baseline], say_difference(one)) for one in differences],
        power=say_power(differences),
        figure=markupsafe.Markup(svg),
        tables=tables,
        notes=notes,
        style=markupsafe.Markup((folder / "report.css").read_text("utf-8")),
    )
