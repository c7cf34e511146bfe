"""Wrap a function of fairseq or PyTorch, or replace words in the function's source."""

import functools
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any


def wrap(owner: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that replaces ``owner.name`` by a function that can call the original.

    The function gets the original as first argument, then the arguments of the call.
    """
    original = getattr(owner, name)

    def replace(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(original, *args, **kwargs)

        setattr(owner, name, call)
        return call

    return replace


def reword(owner: Any, name: str, changes: Mapping[str, str], **names: Any) -> bool:
    """Replace passages in the source of the function ``owner.name``, and compile it again.

    It is for a condition in the midst of a long function, which cannot be wrapped.

    Args:
        owner, name: a class or a module, and its function.
        changes: words of the source, and what is to be in their place.
        names: objects that the new words refer to; they become part of the function's module.

    Returns:
        Whether all of the words are there, each once; otherwise the function stays as it is.
    """
    function = getattr(owner, name)
    lines, first = inspect.getsourcelines(function)
    source = textwrap.dedent("".join(lines))
    if any(source.count(words) != 1 for words in changes):
        return False
    for words, others in changes.items():
        source = source.replace(words, others)
    # Tracebacks name the function's own file, and nearly its own lines.
    code = compile("\n" * (first - 1) + source, inspect.getfile(function), "exec")
    made: dict[str, Any] = {}
    function.__globals__.update(names)
    exec(code, function.__globals__, made)
    setattr(owner, name, made[name])
    return True
