"""How Sphinx builds the site: ``bash scripts/docs.sh``."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # for equations

import syncattn_fairseq
import syncattn_fairseq.plugin  # noqa: F401  (imports fairseq in the order that works)

logging.getLogger("markdown_it").setLevel(logging.WARNING)  # fairseq makes every logger talkative

project = "syncattn-fairseq"
author = copyright = "syncattn-fairseq contributors"
version = release = syncattn_fairseq.__version__
exclude_patterns = ["_build"]
extensions = ["equations", "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

smartquotes = False  # it makes one dash of the two of an option
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # links to headings work as on GitHub

default_role = "name"  # of docstrings: `translate` is a name, `d_i` an equation
html_math_renderer = "mathml"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
add_module_names = False
maximum_signature_line_length = 80  # longer ones have a line for each argument

html_theme = "furo"
html_title = "syncattn-fairseq"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_favicon = "_static/favicon.svg"
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False

#: Links that GitHub follows out of docs/, and what stands in their place on the site.
MOVED = {"../README.md": "index.md", "../configs": "settings.md"}


def adapt(app: Any, page: str, source: list[str]) -> None:
    """Let links between pages and the README work on the site too."""
    for there, here in MOVED.items():
        source[0] = source[0].replace(f"]({there}", f"]({here}")


def keep_returns(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Tell napoleon that what stands before a colon is no type."""
    if what in ("property", "attribute") and ":" in lines[0]:
        lines[0] = ": " + lines[0]
    for number, line in enumerate(lines[:-1]):
        if line.strip() == "Returns:":
            indent = len(lines[number + 1]) - len(lines[number + 1].lstrip())
            lines[number + 1] = " " * indent + ": " + lines[number + 1].lstrip()


def setup(app: Any) -> None:
    """Register with Sphinx."""
    app.connect("source-read", adapt)
    app.connect("autodoc-process-docstring", keep_returns, priority=400)  # napoleon has 500
