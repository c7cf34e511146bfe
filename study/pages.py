"""Update the tables and the numbers of the study's pages from the results.

Usage: ``python -m study.pages``; a test compares. Tables are made by the commands above them
(`study.tables`). Behind numbers is a comment that says what they are (`study.facts`)::

    trees are .044 nats [.031, .057] better<!-- = distance_random − distance_tree: NLL -->.

It has as many numbers as it names, the last ones in front of it. Several facts are separated by
semicolons. This line holds for what follows, until the next one::

    <!-- numbers of planned/multi30k_tiny_en_de_3625: NLL -->

Facts that name no file are of that one, and facts that ask nothing ask that. Numbers keep the style
of the page: no zero in front of the point, or one; a plus, or none; two digits of a p, or three.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.files import replacing

from . import tables
from .facts import ROOT, Number, compute

PAGES = sorted((ROOT / "study").glob("*.md"))
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_NUMBER = re.compile(
    r"(?<![\w.])(?P<relation>[<=]\s+)?(?P<sign>[−+]?)"
    r"(?P<digits>\d{1,3}(?:,\d{3})+|\d*\.\d+|\d+)(?!\w)"
)
#: What has no numbers of the study: code, and where links lead.
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
#: A p below this is said to be less than .001.
_TINY = 0.0005
#: Where a paragraph, an item of a list or a row of a table begins.
_BLOCK = re.compile(r"\n(?=\n|\||- )")


@dataclass(frozen=True)
class Shown:
    """A number on a page whose value is named by the comment behind it.

    Attributes:
        fact: what the comment says.
        match: the number in the page.
        number: what it must be.
    """

    fact: str
    match: re.Match[str]
    number: Number

    def write(self) -> str:
        """Return the number as it stands on the page if it is right, or else the right number."""
        return self.match[0] if self._is_right() else self._format()

    def _is_right(self) -> bool:
        relation, sign, digits = self.match.group("relation", "sign", "digits")
        shown = float(digits.replace(",", "")) * (-1 if sign == "−" else 1)
        decimals, number = len(digits.partition(".")[2]), self.number
        if not number.is_p:
            return decimals == number.digits and shown == round(number.value, decimals)
        is_less = (relation or "").startswith("<")
        if is_less != (number.value < _TINY) or not number.digits <= decimals <= 3:
            return False
        return shown == round(max(number.value, 0.001), decimals) > 0

    def _format(self) -> str:
        relation, sign, digits = self.match.group("relation", "sign", "digits")
        value, decimals = self.number.value, self.number.digits
        if self.number.is_p:
            relation = "< " if value < _TINY else relation and "= "
            value, decimals = max(value, 0.001), 3
        text = f"{abs(value):,.{decimals}f}"
        if not digits.startswith("0") and decimals:
            text = text.removeprefix("0")
        minus = "−" if round(value, decimals) < 0 else "+" if sign == "+" else ""
        return (relation or "") + minus + text


def list_shown(page: str, name: object = "the page") -> list[Shown]:
    """List the numbers of a page that comments name, in their order.

    Args:
        page: its text.
        name: what errors call it.

    Raises:
        DataError: a comment cannot be read, or names more numbers than stand in front of it.
    """
    text = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), page)
    found: list[Shown] = []
    place = asked = ""
    end = 0
    for comment in _COMMENT.finditer(text):
        said = " ".join(page[comment.start(1) : comment.end(1)].split())
        line = text.count("\n", 0, comment.start()) + 1
        with naming(f"{name}:{line}: {said}"):
            if said.startswith("numbers of "):
                place, _, asked = said.removeprefix("numbers of ").partition(": ")
            elif said.startswith("= "):
                facts = said.removeprefix("= ").split("; ")
                named = [(fact, x) for fact in facts for x in compute(fact, place, asked)]
                start = max([end, *(x.end() for x in _BLOCK.finditer(text, end, comment.start()))])
                found += _match(named, [*_NUMBER.finditer(text, start, comment.start())])
            elif said != "end" and not said.startswith(tuple(tables.PROGRAMS)):
                raise DataError("begin with '= ', 'numbers of ' or a command that prints a table")
        end = comment.end()
    return found


def _match(named: list[tuple[str, Number]], here: list[re.Match[str]]) -> list[Shown]:
    """Pair the last numbers of a block with the numbers named by a comment."""
    if len(here) < len(named):
        raise DataError(f"names {len(named)} numbers, but in front of it are {len(here)}")
    last = here[len(here) - len(named) :]
    return [Shown(fact, found, x) for (fact, x), found in zip(named, last, strict=True)]


def fill_in(page: str, name: object = "the page") -> str:
    """Return a page's text with tables and numbers computed anew; errors as `list_shown`.

    Raises:
        DataError: as `list_shown`, or as `study.tables.fill_in`.
    """
    page = tables.fill_in(page)
    for shown in reversed(list_shown(page, name)):
        page = page[: shown.match.start()] + shown.write() + page[shown.match.end() :]
    return page


def update(path: Path) -> None:
    """Update the tables and numbers in a page's file, and print the changed numbers."""
    page = path.read_text(encoding="utf-8")
    with replacing(path) as temporary:
        temporary.write_text(fill_in(page, path), encoding="utf-8")
    shown = list_shown(page, path)
    print(f"{path.name}: tables {len(tables.TABLE.findall(page))}, numbers {len(shown)}")
    for one in shown:
        if one.write() != one.match[0]:
            print(f"  {one.match[0]} → {one.write()}: {one.fact}")


if __name__ == "__main__":
    os.chdir(ROOT)  # the commands have paths relative to it
    for path in PAGES:
        update(path)
