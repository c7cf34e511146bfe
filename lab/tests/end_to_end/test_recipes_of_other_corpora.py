"""The other half of the recipes, see test_recipes.py."""

import pytest

from lab.tests.end_to_end.test_recipes import RECIPES, check_recipe, parsers

__all__ = ["parsers"]  # a fixture


@pytest.mark.parametrize(("corpus", "systems"), RECIPES[1::2])
def test_recipe(corpus, systems, tmp_path, parsers):  # noqa: F811
    check_recipe(corpus, systems, tmp_path, parsers)
