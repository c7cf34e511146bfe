"""Read the numbers in files of parses and alignments."""

import math
import re

_WHOLE = re.compile("-?[0-9]{1,9}")
_DECIMAL = re.compile("-?[0-9.]{1,40}(e[-+]?[0-9]{1,2})?", re.IGNORECASE)


def read_whole(text: str) -> int:
    """Read a whole number of up to nine digits; raise `ValueError` for any other text.

    Unlike ``int``, it refuses ``1_0``, ``+1`` and ``٣``.
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is not a whole number")
    return int(text)


def read_decimal(text: str) -> float:
    """Read a finite decimal number; raise `ValueError` for any other text."""
    number = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text[:60]!r} is not a number")
    return number
