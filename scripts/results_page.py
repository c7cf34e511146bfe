"""Fill in the tables of docs/results.md and docs/findings.md; a test compares them.

Usage: ``python scripts/results_page.py``. A table is between the command that makes it from the
results in docs/results/ and an end mark::

    <!-- syncattn-recipe CORPUS @GROUP --table --markdown --results docs/results/CORPUS.json -->
    <!-- end -->

Notes on a table that the page already has above its first table are left out.
"""

import contextlib
import io
import os
import re
import shlex
import sys
from collections.abc import Set
from pathlib import Path

from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.lab.cli.recipe import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs" / name for name in ("results.md", "findings.md", "details.md")]
_TABLE = re.compile(
    r"^(<!-- syncattn-recipe (.*?) -->\n).*?^(<!-- end -->)$", re.DOTALL | re.MULTILINE
)


def update(path: Path) -> None:
    """Write new tables into a page; a table that cannot be made ends the program."""
    page = path.read_text(encoding="utf-8")
    with replacing(path) as temporary:
        temporary.write_text(fill_in(page), encoding="utf-8")
    print(f"{path.name}: {len(_TABLE.findall(page))} tables")


def fill_in(page: str) -> str:
    """Return a page with new tables."""
    first = _TABLE.search(page)
    known = {*_list_items(page[: first.start()])} if first else set()
    return _TABLE.sub(lambda part: part[1] + _make_table(part[2], known) + part[3], page)


def _make_table(command: str, known: Set[str]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = main(shlex.split(command))
    if status:
        sys.exit(status)  # main has said why
    text = printed.getvalue()
    for item in _list_items(text):
        if item in known:
            text = text.replace(f"{item}\n", "")
    return f"{text}\n"


def _list_items(text: str) -> list[str]:
    """List the items of all lists, each perhaps of several lines."""
    return re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE)


if __name__ == "__main__":
    os.chdir(ROOT)  # the commands have paths relative to it
    for path in PAGES:
        update(path)
