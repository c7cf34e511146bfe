"""Grids show one row per target word and one column per source word, both from 0.

``#`` is a link of both directions, ``f`` one of forward alone, ``b`` one of backward alone.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.data.words import Link
from syncattn_lab.evaluation.symmetrisation import (
    SYMMETRISATIONS,
    VARIANTS,
    grow_diag,
    symmetrise,
)

SIZE = 5
both_directions = st.tuples(
    *[st.sets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=10)] * 2
)
variants = st.sampled_from(list(VARIANTS))


def read(*rows: str) -> tuple[set[Link], set[Link]]:
    cells = [(i, j, mark) for j, row in enumerate(rows) for i, mark in enumerate(row.split())]
    forward = {(i, j) for i, j, mark in cells if mark in "#f"}
    return forward, {(i, j) for i, j, mark in cells if mark in "#b"}


# Steps of target and source in the order of each: Moses's manual has its own; what a set of all
# eight comes to in Python is shown below.
STEPS = {
    "moses": [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)],
    "lilt": [(1, 0), (-1, -1), (1, -1), (1, 1), (-1, 1), (0, -1), (0, 1), (-1, 0)],
}


def test_the_order_of_lilt_is_that_of_a_set():
    steps = {(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)}
    assert [(down, right) for right, down in steps] == STEPS["lilt"]


def reference(forward: set[Link], backward: set[Link], variant: str, final: bool) -> set[Link]:
    """The pseudocode of Moses's manual, on a matrix with a margin: e is target, f is source."""
    size = range(1, SIZE + 1)
    cells = [(e, f) for e in size for f in size]
    if variant == "lilt":
        cells = [(e, f) for f in size for e in size]
    aligned = [[False] * (SIZE + 2) for _ in range(SIZE + 2)]
    either = [[False] * (SIZE + 2) for _ in range(SIZE + 2)]
    for f, e in forward | backward:
        either[e + 1][f + 1] = True
        aligned[e + 1][f + 1] = (f, e) in forward and (f, e) in backward

    def free(e: int, f: int) -> tuple[bool, bool]:
        return not any(aligned[e]), not any(row[f] for row in aligned)

    before = None
    while before != aligned:
        before = [row[:] for row in aligned]
        for e, f in cells:
            for down, right in STEPS[variant]:
                target, source = free(e + down, f + right)
                ok = target or source if variant == "moses" else target and source
                if aligned[e][f] and either[e + down][f + right] and ok:
                    aligned[e + down][f + right] = True
    for direction in (forward, backward) if final else ():
        for e, f in cells:
            if (f - 1, e - 1) in direction and all(free(e, f)):
                aligned[e][f] = True
    return {(f - 1, e - 1) for e in size for f in size if aligned[e][f]}


@given(both_directions, variants)
def test_growth_agrees_with_the_pseudocode(links, variant):
    assert grow_diag(*links, variant) == reference(*links, variant, final=False)
    method = f"grow-diag-final-and-{variant}"
    assert symmetrise(*links, [method]) == {method: reference(*links, variant, final=True)}


@pytest.mark.parametrize(
    ("grid", "moses", "lilt"),
    [
        # Neighbours up left, up right, down left and down right, in this order. For Moses each of
        # the first three aligns a word, and leaves the last one none. For Lilt the first takes a
        # word from either of the next two, and the last has both of its own.
        (["f . f", ". # .", "b . b"], {(1, 1), (0, 0), (2, 0), (0, 2)}, {(1, 1), (0, 0), (2, 2)}),
        # 2-0 and 2-2 want the same source word: Moses looks up first, Lilt down. For Moses, the
        # target of the other is free.
        ([". . f", ". # .", ". . f"], {(1, 1), (2, 0), (2, 2)}, {(1, 1), (2, 2)}),
        # Both 3-0 and 0-2 have a neighbour with target word 1. Moses visits target word 0 first, so
        # 3-0's 2-1 comes first, and 1-1 has at least its source. Lilt visits source word 0 first,
        # so 0-2's 1-1 comes first, and leaves 2-1 without its target.
        (
            [". . . #", ". f f .", "# . . ."],
            {(3, 0), (0, 2), (2, 1), (1, 1)},
            {(3, 0), (0, 2), (1, 1)},
        ),
        # 1-2 adds 2-1 above it; 3-0 above that one has to wait for the second pass.
        ([". . . f", ". . f .", ". # . ."], *[{(1, 2), (2, 1), (3, 0)}] * 2),
    ],
)
def test_growth_by_hand(grid, moses, lilt):
    links = read(*grid)
    assert (grow_diag(*links, "moses"), grow_diag(*links, "lilt")) == (moses, lilt)


@given(both_directions)
def test_equal_directions_stay_as_they_are(links):
    forward, before = links[0], set(links[0])
    assert symmetrise(forward, forward, SYMMETRISATIONS) == dict.fromkeys(SYMMETRISATIONS, before)
    symmetrise(*links, SYMMETRISATIONS)
    assert forward == before, "the arguments are not changed"
