"""The registry of a Transformer's syntactic parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

from .part import Part

#: By name, in the order in which their options are listed.
PARTS: dict[str, type[Part]] = {}

P = TypeVar("P", bound=type[Part])


def register_part(name: str) -> Callable[[P], P]:
    """Register a part under a name; a decorator, for a user's ``--user-dir`` too.

    Raises:
        ValueError: the name, or that of an option, is taken.
    """

    def register(part: P) -> P:
        if name in PARTS:
            raise ValueError(f"there is already a syntactic part named {name}: choose another name")
        own = {option.name for option in fields(part.Options)}
        for other_name, other in PARTS.items():
            shared = own & {option.name for option in fields(other.Options)}
            if shared and other.Options is not part.Options:
                raise ValueError(
                    f"{name}: {other_name} has an option {min(shared)} already: choose another name"
                )
        PARTS[name] = part
        return part

    return register
