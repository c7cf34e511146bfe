"""A bounded set of batch shapes for a training, chosen from the shapes of the batches.

What is prepared once for a shape, a CUDA graph on a GPU or a product's kernel on a CPU, costs time
and memory for every other shape. A text has thousands of shapes of batches; padded to the nearest
of a few dozen, they cost a tenth more tokens at most.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

#: Default for the share of tokens that padding may add, unless there would be too many shapes.
ADDED = 0.10
#: Default for the most shapes of a plan.
MOST_SHAPES = 160
#: Number of different row counts that matrix products of a training have on a CPU.
ROW_COUNTS = 16
#: Shapes that are compared pair by pair.
_COMPARED = 1500
#: Batches that are measured at a time.
_CHUNK = 10_000


class Shape(NamedTuple):
    """Shape of a batch: number of sentences, and padded lengths of source and target."""

    rows: int
    source: int
    target: int


class Plan:
    """Set of batch shapes; a batch is padded to the smallest sufficient shape.

    Args:
        shapes: ``(n, 3)``: sentences, source length and target length of each shape.
        batches: ``(m, 3)``, the batches that the shapes were chosen for.

    Attributes:
        shapes: the shapes, sorted by their number of tokens, the fewest first.
        added: the share of tokens that padding adds to those batches.
    """

    def __init__(self, shapes: np.ndarray, batches: np.ndarray) -> None:
        shapes = np.unique(shapes, axis=0)
        self.shapes = shapes[np.argsort(_count_tokens(shapes), kind="stable")]
        largest = (batches[:, 0] * batches[:, 1:].max(1)).max(initial=1)
        self._step = -(-int(largest) // ROW_COUNTS)
        different, counts = np.unique(batches, axis=0, return_counts=True)
        padded = np.array([self.fit(*map(int, batch)) for batch in different]).reshape(-1, 3)
        had = (_count_tokens(different) * counts).sum()
        self.added = float((_count_tokens(padded) * counts).sum() / max(1, had) - 1)

    def __len__(self) -> int:
        return len(self.shapes)

    def equals(self, other: "Plan") -> bool:
        """Return whether another plan has the same shapes."""
        return np.array_equal(self.shapes, other.shapes)

    def fit(self, rows: int, source: int, target: int) -> Shape | None:
        """Return the shape with the fewest tokens for a batch; None if every shape is too small.

        Args:
            rows: the number of sentences of the batch.
            source, target: the length of the longest source and of the longest target.
        """
        holding = np.flatnonzero((self.shapes >= (rows, source, target)).all(1))
        return Shape(*map(int, self.shapes[holding[0]])) if len(holding) else None

    def round_rows(self, rows: int) -> int:
        """Round up a number of rows (tokens), so that matrices have few different numbers of rows.

        There are :data:`ROW_COUNTS` such numbers, and more only for matrices that are larger than
        any of the plan's batches.
        """
        return -(-rows // self._step) * self._step


def make_plan(batches: np.ndarray, added: float = ADDED, most: int = MOST_SHAPES) -> Plan:
    """Choose a few batch shapes that are large enough for all batches of a training.

    Beginning with the batches' own shapes, the two are joined that cost the fewest tokens, as long
    as all together cost no more than they may, or there are too many.

    Args:
        batches: ``(m, 3)``: the shape of each batch (:func:`measure_batches`).
        added: the share of tokens that padding may add, to all batches together. Padding adds more
            if ``most`` shapes are too few for this share.
        most: the largest allowed number of shapes.
    """
    batches = np.asarray(batches, dtype=np.int64).reshape(-1, 3)
    had = _count_tokens(batches).sum()
    shapes, counts = _thin_out(batches)
    spent = (_count_tokens(shapes) * counts).sum() - had
    for joined, costs in _join(shapes, counts):
        spent += costs
        if spent > added * had and len(shapes) <= most:
            break
        shapes = joined
    return Plan(shapes, batches)


def measure_batches(
    batches: Sequence[Any], source_sizes: np.ndarray, target_sizes: np.ndarray
) -> np.ndarray:
    """Return the shape of each batch before padding, ``(m, 3)`` (see `Shape`).

    Args:
        batches: the indices of each batch's sentences.
        source_sizes, target_sizes: the length of every sentence of a side, its end included.
    """
    batches = [batch for batch in batches if len(batch)]
    parts = [np.zeros((0, 3), dtype=np.int64)]
    for begin in range(0, len(batches), _CHUNK):
        chunk = batches[begin : begin + _CHUNK]
        rows = np.array([len(batch) for batch in chunk])
        indices = np.concatenate([np.asarray(batch, dtype=np.int64) for batch in chunk])
        firsts = np.cumsum(rows) - rows
        sides = (sizes[indices] for sizes in (source_sizes, target_sizes))
        parts.append(np.stack([rows, *(np.maximum.reduceat(side, firsts) for side in sides)], 1))
    return np.concatenate(parts)


def _count_tokens(shapes: np.ndarray) -> np.ndarray:
    """Return the number of source and target tokens of each shape, ``(n)`` of ``(n, 3)``."""
    return shapes[:, 0] * (shapes[:, 1] + shapes[:, 2])


def _thin_out(batches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a limited number of shapes for all batches, and each shape's batch count.

    Where there are too many, numbers within half a percent of each other become the largest of
    them, or within a percent, and so on.
    """
    ratio, rounded = 0.0, batches
    while True:
        shapes, counts = np.unique(rounded, axis=0, return_counts=True)
        if len(shapes) <= _COMPARED:
            return shapes, counts
        ratio = ratio * 2 or 0.005
        rounded = np.stack([_round_up(column, ratio) for column in batches.T], 1)


def _round_up(numbers: np.ndarray, ratio: float) -> np.ndarray:
    """Replace each number by the largest number on the same logarithmic step."""
    steps = np.floor(np.log(np.maximum(numbers, 1)) / np.log1p(ratio)).astype(np.int64)
    largest = np.zeros(steps.max() + 1, dtype=np.int64)
    np.maximum.at(largest, steps, numbers)
    return largest[steps]


def _join(shapes: np.ndarray, counts: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Join pairs of shapes, step by step; yield the remaining shapes and the cost in tokens.

    Each time, the two are joined that add the fewest tokens to their batches.
    """
    shapes, counts, left = shapes.copy(), counts.copy(), np.ones(len(shapes), dtype=bool)

    def costs_of(one: int) -> np.ndarray:
        together = _count_tokens(np.maximum(shapes[one], shapes)) * (counts[one] + counts)
        costs = (together - _count_tokens(shapes) * counts).astype(np.float64)
        costs -= _count_tokens(shapes[one : one + 1]) * counts[one]
        costs[~left] = costs[one] = np.inf
        return costs

    if len(shapes) < 2:
        return
    costs = np.stack([costs_of(one) for one in range(len(shapes))])
    nearest, least = costs.argmin(1), costs.min(1)
    for _ in range(len(shapes) - 1):
        one = int(least.argmin())
        other, added = int(nearest[one]), int(least[one])
        shapes[one] = np.maximum(shapes[one], shapes[other])
        counts[one] += counts[other]
        left[other] = False
        costs[other] = costs[:, other] = least[other] = np.inf
        costs[one] = costs[:, one] = costs_of(one)
        changed = left & ((nearest == one) | (nearest == other) | (costs[:, one] < least))
        changed[one] = True
        nearest[changed] = costs[changed].argmin(1)
        least[changed] = costs[changed].min(1)
        yield shapes[left], added
