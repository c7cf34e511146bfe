import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.importing import ROOT, fork, import_file

DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_parser", "furo")),
    reason="the site needs Sphinx: pip install 'syncattn-fairseq[docs]'",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from sphinx.cmd.build import main

    folder = tmp_path_factory.mktemp("site")
    options = f"--fail-on-warning --keep-going --quiet -w {folder}/warnings -b html"
    words = [*options.split(), "-d", f"{folder}/trees", "-c", str(DOCS)]
    words += [str(ROOT), f"{folder}/html"]
    assert (fork(lambda: main(words)), (folder / "warnings").read_text()) == (0, "")
    return folder / "html"


def test_every_page_is_there_and_in_the_navigation(site):
    first = (site / "index.html").read_text(encoding="utf-8")
    pages = {*DOCS.rglob("*.md"), *(ROOT / "study").glob("*.md")} - {DOCS / "index.md"}
    assert len(pages) > 30
    for page in pages:
        name = page.relative_to(ROOT).with_suffix(".html")
        assert (site / name).is_file()
        assert f'href="{name}"' in first, f"docs/index.md does not list {name}"
    assert first.count('class="caption"') == 4 and ">Our study<" in first


def test_no_page_asks_for_anything_of_another_host(site):
    asking = re.compile(r'<(?:script|img|iframe|link rel="stylesheet")[^>]*(?:src|href)="https?:')
    for page in site.rglob("*.html"):
        assert not asking.search(page.read_text(encoding="utf-8")), page


def test_docstrings_are_typeset(site):
    page = (site / "docs" / "api" / "functional.html").read_text(encoding="utf-8")
    assert "<msqrt>" in page and ">softmax<" in page and "<munder" in page
    assert page.count('<div class="math">') >= 20
    assert ":math:" not in page and "√" not in page


@pytest.fixture(scope="module")
def equations() -> ModuleType:
    """The extension that typesets them."""
    return import_file(DOCS / "equations.py")


@pytest.mark.parametrize(
    ("equation", "tex"),
    [
        ("A = softmax(Q U Kᵀ / √d)", r"A = \operatorname{softmax}(Q U K^\top  / \sqrt{d})"),
        ("√(2 π σ²)", r"\sqrt{2 π σ^2 }"),
        ("√(f(a) b) c", r"\sqrt{f(a) b} c"),
        ("L_dep", r"L_{\mathrm{dep}}"),
        ("e_{ij} ≤ d_i", r"e_{ij} \le  d_i"),
        ("d̃_i", r"{\tilde{d}{}}_i"),
        (r"\frac{a}{bc} ≤ 1", r"\frac{a}{bc} ≤ 1"),
    ],
)
def test_equations_become_tex(equations, equation, tex):
    assert equations.to_tex(equation) == tex
