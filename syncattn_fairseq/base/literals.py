"""Evaluate literals as Python would, and nothing else."""

import ast
from typing import Any

from .errors import DataError

#: The most characters of a text to evaluate, and the most items of a list that a product makes.
LONGEST = 10_000


def evaluate(text: Any) -> Any:
    """Evaluate a text of literals, and of their sums and multiples, such as ``[(512, 3)] * 2``.

    Raises:
        TypeError: ``text`` is not a string; ``eval`` raises the same.
        DataError: ``text`` holds anything but literals, or is too long.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected a string, got {type(text).__name__}")
    try:
        if len(text) > LONGEST:
            raise ValueError
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
        raise DataError(
            f"{text[:60]!r} is not a number, string, list or dictionary of Python; fairseq would "
            "run this text as code"
        ) from None


def _value(node: ast.AST) -> Any:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left) + _value(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _multiply(_value(left), _value(right))
        case ast.Tuple(elts=elements):
            return tuple(map(_value, elements))
        case ast.List(elts=elements):
            return [*map(_value, elements)]
    return ast.literal_eval(node)


def _multiply(one: Any, other: Any) -> Any:
    for sequence, number in ((one, other), (other, one)):
        if isinstance(sequence, str | bytes | list | tuple) and len(sequence) * number > LONGEST:
            raise ValueError("too long")
    return one * other
