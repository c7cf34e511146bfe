"""Plain dataclasses of options as fairseq wants them."""

from __future__ import annotations

from dataclasses import field, fields, make_dataclass
from functools import cache
from typing import TYPE_CHECKING, get_type_hints

if TYPE_CHECKING:
    from fairseq.dataclass import FairseqDataclass


@cache
def as_fairseq(options: type) -> type[FairseqDataclass]:
    """Turn a plain dataclass of options into one as fairseq wants them."""
    from fairseq.dataclass import ChoiceEnum, FairseqDataclass

    if issubclass(options, FairseqDataclass):
        return options
    types = get_type_hints(options)
    converted = []
    for option in fields(options):
        choices = option.metadata.get("choices")
        kind = ChoiceEnum(list(choices)) if choices else types[option.name]
        new = field(default=option.default, metadata=dict(option.metadata))
        converted.append((option.name, kind, new))
    made = make_dataclass(options.__name__, converted, bases=(FairseqDataclass,))
    made.__doc__ = options.__doc__
    return made
