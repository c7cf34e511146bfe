"""The other half of the recipes, see test_recipes.py."""

from pathlib import Path

import pytest

from tests.end_to_end.test_recipes import RECIPES, check_recipe, parsers

__all__ = ["parsers"]  # a fixture


@pytest.mark.parametrize(("corpus", "systems"), RECIPES[1::2])
def test_recipe(
    corpus: str,
    systems: list[str],
    tmp_path: Path,
    forked_programs: Path,
    parsers: Path,  # noqa: F811
) -> None:
    check_recipe(corpus, systems, tmp_path, forked_programs, parsers)
