import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("docs", "study", "examples", "benchmarks")
PAGES = [*ROOT.glob("*.md"), *(page for x in FOLDERS for page in ROOT.glob(f"{x}/**/*.md"))]
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page):
    text = page.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        assert len(line) <= 120 or line.startswith(("|", "<!-- ")), f"{page}:{number}"
        assert line == line.rstrip(), f"{page}:{number}: spaces at the end"
        assert not line.lstrip().startswith(("+ ", "* ")), f"{page}:{number}: would begin a list"
    for target, heading in LINK.findall(text):
        if not target.startswith("http"):
            there = page.parent / target if target else page
            assert there.exists(), target
            if heading:
                assert heading in headings(there), f"{target}#{heading}"


def headings(page: Path) -> set[str]:
    """Return what GitHub calls a page's headings in links."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}
