"""Tests over sentences of whether two systems differ in BLEU, beside the tests over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from syncattn_fairseq.base.errors import naming

from .contrast import Cell, Cells, Contrast
from .intervals import Interval, bootstrap_seeds
from .results_file import unpack_counts
from .significance import randomisation


def randomise_sentences(contrast: Contrast, cells: Cells) -> tuple[float | None, list[int]]:
    """Test over sentences whether the trained models of a contrast differ in BLEU.

    Returns:
        p, and the seeds of which both systems have their counts: the trainings that were tested.
        Without such a seed, p is None.

    Raises:
        DataError: counts are damaged, or of different texts.
    """
    ours, theirs = contrast.select(cells)
    seeds = sorted({*_list_counted(ours)} & {*_list_counted(theirs)})
    if not seeds:
        return None, seeds
    with naming(contrast.system):
        _, p = randomisation(_unpack(ours, seeds), _unpack(theirs, seeds))
    return p, seeds


def bootstrap_sentences(contrast: Contrast, cells: Cells) -> Interval | None:
    """Return a contrast's difference in BLEU, with its 95 % interval over seeds and sentences.

    None if a system has fewer than two trainings with counts.

    Raises:
        DataError: counts are damaged, or of different texts.
    """
    ours, theirs = contrast.select(cells)
    seeds = _list_counted(ours), _list_counted(theirs)
    if min(map(len, seeds)) < 2:
        return None
    return bootstrap_seeds(_unpack(ours, seeds[0]), _unpack(theirs, seeds[1]))


def _list_counted(cells: Mapping[int, Cell]) -> list[int]:
    """Return the seeds with BLEU's statistics of each sentence."""
    return [seed for seed, cell in cells.items() if "ngrams" in cell]


def _unpack(cells: Mapping[int, Cell], seeds: Iterable[int]) -> list[np.ndarray]:
    return [unpack_counts(cells[seed]["ngrams"]) for seed in seeds]
