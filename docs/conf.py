"""How Sphinx builds the site: ``bash scripts/docs.sh``."""

from __future__ import annotations

import logging
import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # for equations

import syncattn_fairseq
import syncattn_fairseq.plugin  # noqa: F401  (imports fairseq in the order that works)

logging.getLogger("markdown_it").setLevel(logging.WARNING)  # fairseq makes every logger talkative

HERE = Path(__file__).parent

project = "syncattn-fairseq"
author = copyright = "syncattn-fairseq contributors"
version = release = syncattn_fairseq.__version__
# The sources are in the root, so that links between README, docs/ and study/ hold as they are.
root_doc = "README"
include_patterns = ["README.md", "benchmarks/README.md", "docs/**.md", "study/*.md"]
exclude_patterns = ["docs/_build", "docs/index.md", ".*"]
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


def list_chapters() -> str:
    """Return the navigation: the chapters and pages of docs/index.md."""
    made = []
    for chapter in re.split(r"^## ", (HERE / "index.md").read_text("utf-8"), flags=re.M)[1:]:
        title, _, pages = chapter.partition("\n")
        made += ["```{toctree}", ":hidden:", f":caption: {title}", ""]
        for name, page in re.findall(r"^- \[(.+)\]\((.+)\.md\)$", pages, re.M):
            made.append(f"{name} <{posixpath.normpath(f'docs/{page}')}>")
        made += ["```", ""]
    return "\n".join(made)


def adapt(app: Any, page: str, source: list[str]) -> None:
    """Give the first page the navigation, and links to the folder configs/ a page."""
    source[0] = source[0].replace("](../configs)", "](../docs/settings.md)")
    if page == root_doc:
        source[0] += f"\n\n{list_chapters()}"


def copy_first_page(app: Any, error: Exception | None) -> None:
    """Let the site begin at index.html."""
    if error is None:
        shutil.copy(app.outdir / f"{root_doc}.html", app.outdir / "index.html")


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
    app.connect("build-finished", copy_first_page)
    app.connect("autodoc-process-docstring", keep_returns, priority=400)  # napoleon has 500
