"""Options as fields of plain dataclasses, and their conversion to fairseq's dataclasses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, field, fields, make_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

from .errors import DataError

if TYPE_CHECKING:
    from fairseq.dataclass import FairseqDataclass


def flag(name: str) -> str:
    """Return the command-line form of an option: ``--max-tokens`` for ``max_tokens``."""
    return "--" + name.replace("_", "-")


def option(
    default: Any,
    help: str,
    choices: Iterable[str] = (),
    at_least: float | None = None,
    above: float | None = None,
) -> Any:
    """Make the dataclass field of an option, with its help text and allowed values.

    Args:
        default: the default value.
        help: the help text.
        choices: the allowed values; empty for any.
        at_least: the inclusive lower bound of a number; None for none.
        above: the exclusive lower bound of a number; None for none.
    """
    metadata: dict[str, Any] = {"help": help}
    if choices:
        metadata["choices"] = tuple(choices)
    metadata |= {"at_least": at_least, "above": above}
    return field(default=default, metadata=metadata)


def check_numbers(cfg: Any, options: type) -> None:
    """Raise ``DataError`` if a number in ``cfg`` breaks the lower bound set in ``options``."""
    for each in fields(options):
        value = getattr(cfg, each.name, None)
        at_least, above = each.metadata.get("at_least"), each.metadata.get("above")
        if at_least is not None and not value >= at_least:  # NaN is not
            raise DataError(f"{flag(each.name)} {value}: must be {at_least} or more")
        if above is not None and not value > above:
            raise DataError(f"{flag(each.name)} {value}: must be above {above}")


def add_named(registry: dict[str, Any], name: str, added: Any, what: str) -> None:
    """Register a class by name, if its ``Options`` are fit for fairseq's command line.

    Args:
        registry: the named classes, which get another entry.
        name: the name of the class.
        added: the class.
        what: the kind of class, for error messages.

    Raises:
        DataError: the name is taken, ``Options`` is not a dataclass itself, or one of its fields
            has no default.
    """
    if name in registry:
        raise DataError(f"there is already a {what} named {name}: choose another name")
    if "__dataclass_fields__" not in vars(added.Options):  # it may inherit some
        raise DataError(f"{name}: put @dataclass before the class {added.Options.__name__}")
    for each in fields(added.Options):
        if each.default is MISSING:
            raise DataError(f"{name}: give the option {each.name} a default: option(...)")
    registry[name] = added


@cache
def as_fairseq(options: type) -> type[FairseqDataclass]:
    """Return a fairseq dataclass with the fields of a plain dataclass of options."""
    from fairseq.dataclass import ChoiceEnum, FairseqDataclass

    if issubclass(options, FairseqDataclass):
        return options
    types = get_type_hints(options)
    converted = []
    for each in fields(options):
        choices = each.metadata.get("choices")
        kind = ChoiceEnum(list(choices)) if choices else types[each.name]
        new = field(default=each.default, metadata=dict(each.metadata))
        converted.append((each.name, kind, new))
    made = make_dataclass(options.__name__, converted, bases=(FairseqDataclass,))
    made.__doc__ = options.__doc__
    return made
