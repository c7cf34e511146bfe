"""Signatures say the shapes of tensors, and tests refuse others (:mod:`tests.shapes`)."""

import inspect
import pkgutil
import re
from importlib import import_module
from typing import Any

import jaxtyping
import pytest
import torch

from syncattn_fairseq.functional import parent_scaled_scores
from syncattn_fairseq.modules import BatchView
from syncattn_fairseq.modules.heads import Heads, Scope
from tests.shapes import PACKAGES


def test_a_wrong_shape_that_broadcasts_is_refused():
    query, key = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 8)
    for weights in (torch.rand(2, 1, 5, 5), torch.rand(5, 5)):
        assert parent_scaled_scores(query, key, weights).shape == (2, 4, 5, 5)
    one_row = torch.rand(2, 1, 1, 5)
    assert (query @ key.transpose(-1, -2) * one_row).shape == (2, 4, 5, 5)
    with pytest.raises(jaxtyping.TypeCheckError, match="parameter 'parent_weights'"):
        parent_scaled_scores(query, key, one_row)


class BiasedHeads(Heads):
    def bias(self, query, key, scope):
        return self.added


def test_what_a_kind_of_heads_adds_to_scores_must_fit():
    heads, scope = BiasedHeads(2, 4, BatchView()), Scope(None, None, False, torch.nn.Dropout(0.0))
    states = torch.randn(1, 2, 3, 4)
    for shape in ((1, 2, 3, 3), (2, 1, 3), (3, 3)):
        heads.added = torch.zeros(shape)
        assert heads.attend(states, states, states, scope).shape == states.shape
    heads.added = torch.zeros(2, 3, 4)
    with pytest.raises(jaxtyping.TypeCheckError, match="parameter 'bias'"):
        heads.attend(states, states, states, scope)


def list_functions() -> dict[str, Any]:
    """List the public functions and methods, by name."""
    functions: dict[str, Any] = {}
    for package in map(import_module, PACKAGES):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = import_module(found.name)
            classes = [thing for thing in vars(module).values() if inspect.isclass(thing)]
            for owner in (module, *classes):
                functions |= {
                    f.__qualname__: f for f in vars(owner).values() if inspect.isfunction(f)
                }
    return {
        name: function
        for name, function in functions.items()
        if function.__module__.startswith(PACKAGES) and "_" not in (name[0], name.split(".")[-1][0])
    }


def test_every_function_says_the_shapes_of_its_tensors():
    functions = list_functions()
    assert {"parent_gaussian", "GatedHeads.bias", "Scope.softmax"} <= functions.keys()
    for name in ("widen", "multiply"):  # for tensors of any shape
        del functions[name]
    hints = {
        name: [str(hint) for hint in function.__annotations__.values()]
        for name, function in functions.items()
    }
    bare = re.compile(r"\bTensor\b(?!, ['\"])")
    assert [name for name in hints if bare.search(" ".join(hints[name]))] == []
