"""Equations of docstrings and pages, typeset as MathML, which browsers draw without any script.

Docstrings write them as a terminal can show them, ``A = softmax(Q U Kᵀ / √d)``; pages that GitHub
shows as well write TeX between dollar signs. What has a backslash is taken for TeX.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

SYMBOLS = {
    "Σ": r"\sum ",
    "Π": r"\prod ",
    "ᵀ": r"^\top ",
    "²": "^2 ",
    "−": "-",
    "…": r"\ldots ",
    "·": r"\cdot ",
    "⊙": r"\odot ",
    "≤": r"\le ",
    "∩": r"\cap ",
}
ACCENTS = {"\u0303": "tilde", "\u0304": "bar"}


def to_tex(equation: str) -> str:
    """Translate an equation of a docstring; words of two letters and more stand upright."""
    if "\\" in equation:
        return equation
    text = unicodedata.normalize("NFD", equation)
    text = re.sub(r"(\w)([\u0303\u0304])", lambda m: rf"{{\{ACCENTS[m[2]]}{{{m[1]}}}{{}}}}", text)
    # Not inside braces, where letters are indices: e_{ij}.
    text = re.sub(r"_([a-zA-Z]{2,})|(?<![\\a-zA-Z])([a-zA-Z]{2,})(?![^{]*\})", _upright, text)
    text = re.sub(r"√\(((?:[^()]|\([^()]*\))*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"√(\w)", r"\\sqrt{\1}", text)
    for symbol, tex in SYMBOLS.items():
        text = text.replace(symbol, tex)
    return text


def _upright(match: re.Match[str]) -> str:
    if match[1]:
        return rf"_{{\mathrm{{{match[1]}}}}}"
    return rf"\operatorname{{{match[2]}}}"


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Write an equation within a line."""
    writer.body.append(tex2mathml(to_tex(node.astext())))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Write equations on lines of their own."""
    for line in filter(None, map(str.strip, node.astext().splitlines())):
        writer.body.append(f'<div class="math">{tex2mathml(to_tex(line), as_block=True)}</div>\n')
    raise nodes.SkipNode


def name_role(
    role: str, raw: str, text: str, line: int, inliner: Any, options: Any = None, content: Any = ()
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Read single backticks of docstrings: names of Python, or else equations."""
    if re.fullmatch(r"[A-Za-z_]{3,}[\w.]*", text):
        names = inliner.document.settings.env.get_domain("py")
        link: Any = names.role("obj")
        return link("py:obj", raw, text, line, inliner, options or {}, content)
    return [nodes.math(raw, text)], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_role("name", name_role)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
