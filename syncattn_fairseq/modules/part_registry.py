"""The registry of a Transformer's syntactic parts."""

from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

from ..base.errors import DataError
from ..base.option_fields import add_named
from .part import Part

#: By name, in the order in which their options are listed.
PARTS: dict[str, type[Part]] = {}

P = TypeVar("P", bound=type[Part])


def register_part(name: str) -> Callable[[P], P]:
    """Register a part under a name; a decorator, for a user's ``--user-dir`` too.

    Raises:
        DataError: the name, or that of an option, is taken, or the options are no dataclass.
    """

    def register(part: P) -> P:
        others = dict(PARTS)
        add_named(PARTS, name, part, "syntactic part")
        own = {option.name for option in fields(part.Options)}
        for other_name, other in others.items():
            shared = own & {option.name for option in fields(other.Options)}
            if shared and other.Options is not part.Options:
                del PARTS[name]
                raise DataError(
                    f"{name}: {other_name} has an option {min(shared)} already: choose another name"
                )
        return part

    return register
