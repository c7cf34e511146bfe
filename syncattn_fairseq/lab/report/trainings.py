"""What a report shows of several trainings of each system."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..evaluation.differences import Comparison


@dataclass(frozen=True)
class Trainings:
    """The results of all seeds."""

    comparisons: Sequence[Comparison]
    tables: Sequence[Sequence[Sequence[str]]]
    """Rows of cells, the first with the names of the columns."""
    notes: Sequence[str]
    forest: Mapping[str, Any] | None
    """Vega-Lite with its data: the differences to the baselines; None if there are none."""
    parents: Mapping[str, float]
    """The share of the source's parents that the heads find, from 0 to 100, by system."""
    errors: Mapping[str, float]
    """Alignment error rates, from 0 to 100, by system."""
    shown: str
    """Says which trainings the rest of the page is about."""
