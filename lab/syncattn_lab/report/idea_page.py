"""The page that says whether an idea helps: one self-contained HTML file without scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Comparison:
    """The idea and one of its controls.

    Attributes:
        question: what the control asks.
        difference: the idea's NLL minus the control's.
    """

    question: str
    difference: Difference

    @property
    def name(self) -> str:
        """The control's name."""
        return self.difference.contrast.baseline

    def say(self, idea: str) -> str:
        """Say what the difference is, in a sentence."""
        difference = self.difference
        text = f"{idea} is {_SAYS[difference.verdict]} {self.name}: {difference.format()} nats per "
        p = difference.p  # None if nothing varies
        return f"{text}subword." if p is None else f"{text}subword, p {format_p(p)}."


def sum_up(idea: str, comparisons: Sequence[Comparison]) -> str:
    """Say in a sentence whether an idea helps; the first control is the plain system."""
    plain, *others = comparisons
    if plain.difference.verdict != "better":
        return f"{idea} is {_SAYS[plain.difference.verdict]} a plain Transformer."
    left = [one.name for one in others if one.difference.verdict != "better"]
    if left:
        names = ", ".join(left)
        return f"{idea} helps, but it is not shown to be better than {names}, which may be why."
    return f"{idea} helps, and none of its controls does as much."


def say_power(comparisons: Sequence[Comparison]) -> str:
    """Say which differences all these tests of so many seeds show; nothing if nothing varies."""
    blocks = [one.difference.blocks for one in comparisons if one.difference.blocks]
    if not blocks:
        return ""
    least = max(each.detectable(len(comparisons)) for each in blocks)
    return f"So many seeds show a difference of {least:.3f} with 80 % power, after correction."


def render_idea(
    idea: str,
    comparisons: Sequence[Comparison],
    figure: dict[str, Any],
    tables: Mapping[str, Sequence[Sequence[str]]],
    notes: Sequence[str],
) -> str:
    """Render the page.

    Args:
        idea: the name of its system.
        comparisons: those with each control, the plain system first.
        figure: of the differences, Vega-Lite with its data.
        tables: rows by heading; the first row has the names of the columns.
        notes: a line each.
    """
    folder = files(__package__) / "page"
    svg: Any = vl_convert.vegalite_to_svg(figure)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string((folder / "idea.html").read_text("utf-8")).render(
        idea=idea,
        summary=sum_up(idea, comparisons),
        comparisons=comparisons,
        power=say_power(comparisons),
        figure=markupsafe.Markup(svg),
        tables=tables,
        notes=notes,
        style=markupsafe.Markup((folder / "report.css").read_text("utf-8")),
    )
