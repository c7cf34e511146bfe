"""Train without PyTorch's compiler, whose import takes half of the time to a first update.

Fault: all versions of PyTorch import ``torch._dynamo`` when an optimizer is made, and sympy when
attention gets a mask of padding, though nothing is compiled.
Test: ``test_compiler_imports.py``.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

from .wrapping import wrap

#: Where PyTorch keeps a function as its compiler should see it.
_SEEN = "__dynamo_disable"


def mend() -> None:
    """Keep optimizers and attention from importing PyTorch's compiler if it is not imported yet."""
    import torch

    for name, method in vars(torch.optim.Optimizer).items():
        if hasattr(method, "__wrapped__") and not name.startswith("_"):
            _avoid(method)

    @wrap(torch, "_check_with")
    def check_with(check: Any, error: Any, condition: Any, message: Any) -> None:
        if condition is not True:
            check(error, condition, message)


def _avoid(function: Callable[..., Any]) -> None:
    inner = function.__wrapped__  # type: ignore[attr-defined]

    @functools.wraps(inner)
    def call(*args: Any, **options: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return inner(*args, **options)
        if vars(inner).get(_SEEN) is call:
            delattr(inner, _SEEN)
        return function(*args, **options)

    setattr(inner, _SEEN, call)
