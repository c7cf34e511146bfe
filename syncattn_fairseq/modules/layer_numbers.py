"""Options that name layers, and checks of their values."""

from typing import Any

from ..base.errors import DataError
from ..base.option_fields import flag, option

SIDES = ("encoder", "decoder")


def check_range(cfg: Any, option: str, lowest: float, highest: float, explanation: str) -> None:
    """Raise ``DataError`` if an option is out of range."""
    value = getattr(cfg, option)
    if not lowest <= value <= highest:
        raise DataError(f"{flag(option)} {value}: {explanation}")


def encoder_layers_option(what: str) -> Any:
    """Make the option that lists encoder layers with some kind of heads, which ``what`` tells."""
    return option("", f"encoder layers {what}, such as 1,2, or all (none)")


def decoder_layers_option() -> Any:
    """Make the option that lists the decoder layers with the same heads."""
    return option("same", "the same for the decoder; same: those of the encoder")


def read_layer(cfg: Any, option: str, side: str) -> int:
    """Return the layer that an option names, from 1 at the bottom; 0 = none; else `DataError`."""
    highest = getattr(cfg, side).layers
    check_range(cfg, option, 0, highest, f"the {side} has layers 1 to {highest}")
    return getattr(cfg, option)


def read_layers(cfg: Any, option: str, side: str) -> list[int]:
    """Return the layers of a side, from 1 at the bottom, that an option names, else `DataError`.

    Its value is a list such as ``1,2``, or ``all``, or ``none`` (or empty).
    """
    value, highest = str(getattr(cfg, option)), getattr(cfg, side).layers
    if value == "all":
        return list(range(1, highest + 1))
    if value in ("", "none"):
        return []
    if not all(n.isdecimal() and 1 <= int(n) <= highest for n in value.split(",")):
        raise DataError(
            f"{flag(option)} {value}: the {side} has layers 1 to {highest}; list some (1,2), or "
            "write all or none"
        )
    return sorted({int(n) for n in value.split(",")})
