import re

from tests.importing import ROOT, import_file

DOCS = ROOT / "docs"


def test_the_page_of_options_is_up_to_date():
    page = (DOCS / "options.md").read_text(encoding="utf-8")
    assert import_file(ROOT / "scripts" / "options_page.py").make_page() == page
    for option in ("--supervised-gate-layers", "--tree-position", "--sync-mse-weight"):
        assert f"| `{option}` |" in page


def test_the_readme_is_short():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 105
    assert not re.findall(r"\[[−+.\d]+, [−+.\d]+\]", page), "intervals are for study/findings.md"


def test_a_phone_shows_the_picture_of_the_readme_with_legible_words():
    svg = (DOCS / "attention.svg").read_text(encoding="utf-8")
    shown = min(1.0, 358 / int(re.findall(r'width="(\d+)"', svg)[0]))
    [size] = re.findall(r'font-size="([\d.]+)"', svg)  # of all words
    assert svg.count("<text ") == 19 and float(size) * shown >= 11


def test_each_page_says_where_to_go_next():
    for path in [*DOCS.glob("*.md"), *(ROOT / "study").glob("*.md")]:
        last = path.read_text(encoding="utf-8").rstrip().split("\n\n")[-1]
        assert path.name == "index.md" or (last.startswith("Next: ") and "](" in last), path
