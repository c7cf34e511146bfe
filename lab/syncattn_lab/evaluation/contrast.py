"""A contrast between two systems, and its tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Cell: TypeAlias = Mapping[str, Any]
"""The results of one training (a system with one seed), as `.results_file` describes them."""
Cells: TypeAlias = Mapping[str, Mapping[int, Cell]]
"""The results of all trainings, by system and then by seed."""


@dataclass(frozen=True)
class Contrast:
    """A comparison of a system with a baseline: the seeds, the test, and whether it was planned.

    A system of a table and its baseline are a contrast that nobody planned, and all seeds with
    results count. A planned contrast says nothing before all of its seeds have results.

    Attributes:
        system: the system; the difference is its number minus the baseline's.
        baseline: what it is compared with.
        group: the heading that it stands below.
        seeds: those that both systems are planned to be trained with; None: nobody planned any.
        tested: whether the contrast belongs to the family of tests whose p are corrected together.
            Other contrasts have intervals only.
        margin: of an equivalence test, in nats: that the systems differ in NLL by less; 0: no such
            test.
        by_blocks: whether interval and test take seeds as blocks; otherwise they are Welch's.
        per_word: whether NLL is that of a word, since the systems' subwords differ.
    """

    system: str
    baseline: str
    group: str = ""
    seeds: tuple[int, ...] | None = None
    tested: bool = True
    margin: float = 0.0
    by_blocks: bool = False
    per_word: bool = False

    @property
    def name(self) -> str:
        """The difference as written in tables, ``system − baseline``."""
        return f"{self.system} − {self.baseline}"

    @property
    def systems(self) -> tuple[str, str]:
        """The system and its baseline."""
        return self.system, self.baseline

    @property
    def is_planned(self) -> bool:
        """Whether the contrast and its seeds were planned before any training."""
        return self.seeds is not None

    @property
    def heading(self) -> str:
        """The heading of the contrast's group in tables, which says if NLL is per word."""
        return f"{self.group}, NLL per word" if self.per_word else self.group

    def is_trained_like(self, other: Contrast) -> bool:
        """Tell whether another contrast has the same seeds and unit of NLL (subword or word)."""
        return (self.seeds, self.per_word) == (other.seeds, other.per_word)

    def select(self, cells: Cells) -> tuple[dict[int, Cell], dict[int, Cell]]:
        """Return the system's results and the baseline's, by seed, for the contrast's seeds."""
        ours, theirs = (cells.get(system, {}) for system in self.systems)
        return self._of_seeds(ours), self._of_seeds(theirs)

    def _of_seeds(self, cells: Mapping[int, Cell]) -> dict[int, Cell]:
        seeds = cells if self.seeds is None else self.seeds
        return {seed: cells[seed] for seed in seeds if seed in cells}
