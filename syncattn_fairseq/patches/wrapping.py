"""Put a function of ours around one of fairseq's or PyTorch's."""

import functools
from collections.abc import Callable
from typing import Any


def wrap(owner: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace ``owner.name`` by the function below, which gets the original as first argument."""
    original = getattr(owner, name)

    def replace(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(original, *args, **kwargs)

        setattr(owner, name, call)
        return call

    return replace
