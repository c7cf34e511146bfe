"""Names that docstrings and comments refer to, in roles or between single backticks, exist."""

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.importing import ROOT

PACKAGES = (ROOT / "syncattn_fairseq", ROOT / "lab" / "syncattn_lab", ROOT / "study")
#: A reference in a role, or a name between single backticks; not in double ones, which are code.
REFERENCE = re.compile(r"(?<!`)(?::\w+:)?`~?([A-Za-z_.][\w.]*)`(?!`)")
#: What begins with the name of another library is not looked for.
OTHERS = ("fairseq", "torch", "numpy", "transformers", "ctranslate2", "stanza", "spacy", "tests")


def list_modules() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package.parent).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__"), path


def list_names(module: str, tree: ast.AST) -> Iterator[str]:
    """Yield what a module defines or imports: functions, their arguments, classes, attributes."""
    yield module
    scopes: list[tuple[str, ast.AST]] = [(module, tree)]
    while scopes:
        scope, node = scopes.pop()
        for child in ast.iter_child_nodes(node):
            name = scope
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{scope}.{child.name}"
                yield name
            elif isinstance(child, ast.arg):
                yield f"{scope}.{child.arg}"
            elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                yield f"{scope}.{child.id}"
            elif isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
                yield f"{scope}.{child.attr}"
            elif isinstance(child, ast.alias):
                yield f"{scope}.{child.asname or child.name}"
            scopes.append((name, child))


def list_references(path: Path, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the references of docstrings and of comments, with their lines."""
    for node in ast.walk(tree):
        # A string that is a statement of its own says what stands before it.
        text = getattr(node.value, "value", "") if isinstance(node, ast.Expr) else ""
        for found in REFERENCE.finditer(text) if isinstance(text, str) else ():
            yield node.lineno + text.count("\n", 0, found.start()), found[1]
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        _, comment, text = line.partition("#: ")
        if comment:
            yield from ((number, found[1]) for found in REFERENCE.finditer(text))


def read_all() -> tuple[set[str], list[tuple[str, str]]]:
    """Return the endings of all known names, and the references with their places."""
    known: set[str] = set()
    references = []
    for module, path in list_modules():
        tree = ast.parse(path.read_text("utf-8"))
        for name in list_names(module, tree):
            parts = name.split(".")
            known.update(".".join(parts[start:]) for start in range(len(parts)))
        place = path.relative_to(ROOT)
        references += [(f"{place}:{line}", name) for line, name in list_references(path, tree)]
    return known, references


def is_known(name: str, known: set[str]) -> bool:
    plain = name.strip(".")
    first = plain.partition(".")[0]
    # One letter, perhaps with an index, is part of an equation.
    is_equation = re.fullmatch("[A-Za-z](_?\\w)?", plain) is not None
    return is_equation or plain in known or hasattr(builtins, first) or first in OTHERS


def test_what_docstrings_refer_to_exists():
    known, references = read_all()
    assert len(references) > 300
    dead = [f"{place}: `{name}`" for place, name in references if not is_known(name, known)]
    assert not dead, "\n".join(dead)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("as :func:`.data.words.gone` does", [".data.words.gone"]),
        ("see :class:`~a.B`", ["a.B"]),
        ("`name` and ``code``", ["name"]),
        ("`d_i` and `A = B`", ["d_i"]),
    ],
)
def test_references_are_found(text, found):
    assert REFERENCE.findall(text) == found


def test_a_dead_reference_is_seen():
    known, _ = read_all()
    assert is_known(".data.words.join_subwords", known)
    assert not is_known(".data.words.join_sub", known)
    assert not is_known("no_such_name", known)
