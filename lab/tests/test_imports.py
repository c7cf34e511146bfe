from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.importing import ROOT
from tests.test_imports import list_imports


def sort_modules(root: Path, package: str) -> list[str]:
    """Return a package's modules in an order in which each imports only earlier ones.

    Imports count wherever they are, in functions and for type checkers, too.

    Raises:
        CycleError: there is no such order.
    """
    paths = {
        ".".join(path.relative_to(root).with_suffix("").parts): path
        for path in (root / package).rglob("*.py")
    }
    graph: dict[str, set[str]] = {module: set() for module in paths}
    for module, path in paths.items():
        for name in list_imports(path, root):
            graph[module] |= {name, name.rpartition(".")[0]} & paths.keys()
    return [*TopologicalSorter(graph).static_order()]


def test_modules_of_the_laboratory_do_not_import_each_other_in_circles():
    modules = sort_modules(ROOT / "lab", "syncattn_lab")
    contrast, differences, tables, figure = (
        modules.index(f"syncattn_lab.{name}")
        for name in (
            *("evaluation.contrast", "evaluation.differences", "evaluation.contrast_tables"),
            "recipes.figures",
        )
    )
    assert contrast < differences < tables < figure


@pytest.mark.parametrize("line", ["from .a import x", "def f():\n    from package import a"])
def test_a_planted_circle_is_found(tmp_path, line):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "a.py").write_text("from .b import y")
    (tmp_path / "package" / "b.py").write_text("")
    assert sort_modules(tmp_path, "package") == ["package.b", "package.a"]
    (tmp_path / "package" / "b.py").write_text(line)
    with pytest.raises(CycleError):
        sort_modules(tmp_path, "package")
