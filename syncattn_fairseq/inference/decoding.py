"""Settings of the search for translations."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.errors import DataError, shorten

#: What happens to a source of more subwords than the model reads.
TOO_LONG = ("stop", "empty")

#: The largest absolute value of the length penalty: beyond it, scores leave the range of floats.
MOST_PENALTY = 10
#: The largest number of anything that is counted.
_MOST = 999_999_999


@dataclass(frozen=True)
class Decoding:
    """Settings of the beam search for one call; calls with equal settings share batches.

    Args:
        beam: number of hypotheses that the search keeps.
        length_penalty: exponent of the length by which the log-probability of a hypothesis is
            divided. Above 1, longer translations are preferred.
        max_len: most subwords of a translation, if the model has positions for as many. None: 200
            or, for a source of more than 32 subwords, from 4 to 8 times as many as it has, up to
            1000.
        max_source: most subwords of a source. None: as many as the model has positions for.
        too_long: what happens to a source of more subwords: ``stop`` raises `DataError`, ``empty``
            leaves its translation empty.
        batch_size: number of sentences that are decoded together.

    Raises:
        DataError: a value is impossible.
    """

    beam: int = 5
    length_penalty: float = 1.0
    max_len: int | None = None
    max_source: int | None = None
    too_long: str = "stop"
    batch_size: int = 32

    def __post_init__(self) -> None:
        """Check that each setting has a possible value."""
        for name in ("beam", "batch_size"):
            _check_count(name, getattr(self, name))
        for name in ("max_len", "max_source"):
            if getattr(self, name) is not None:
                _check_count(name, getattr(self, name))
        penalty = self.length_penalty
        if type(penalty) not in (int, float) or not -MOST_PENALTY <= penalty <= MOST_PENALTY:
            raise DataError(
                f"length_penalty {_show(penalty)}: give a number from {-MOST_PENALTY} to "
                f"{MOST_PENALTY}"
            )
        if self.too_long not in TOO_LONG:
            raise DataError(f"too_long {_show(self.too_long)}: choose one of {', '.join(TOO_LONG)}")


def _check_count(name: str, value: object) -> None:
    if type(value) is not int or not 1 <= value <= _MOST:
        raise DataError(f"{name} {_show(value)}: give a whole number from 1 to {_MOST:,}")


def _show(value: object) -> str:
    try:
        return shorten(repr(value), 40)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "of thousands of digits"


#: The settings of calls that give none.
DEFAULT = Decoding()
