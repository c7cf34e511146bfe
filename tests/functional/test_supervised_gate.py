from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from syncattn_fairseq.functional import gap_heights, supervised_gates
from syncattn_fairseq.functional.supervised_gate import supervised_log_gates


def slow_gates(distances: list[float], temperature: float) -> Tensor:
    length = len(distances)
    gates = torch.ones(length, length).double()
    for t in range(length):
        for i in range(length):
            for j in range(min(i, t) + 1, max(i, t)):
                gates[t, i] *= (1 + math.tanh((distances[t] - distances[j]) / temperature)) / 2
    return gates


def subtree(parents: list[int], top: int) -> set[int]:
    members = {top}
    while True:
        grown = members | {i for i, parent in enumerate(parents) if parent in members}
        if grown == members:
            return members
        members = grown


def height(parents: list[int], top: int) -> int:
    below = [i for i, parent in enumerate(parents) if parent == top and i != top]
    return max((1 + height(parents, child) for child in below), default=0)


def slow_heights(parents: list[int]) -> list[int]:
    """Of one tree of whole words."""
    heights = [height(parents, i) for i in range(len(parents))]
    gaps = [max(heights)]
    for i in range(1, len(parents)):
        holders = [w for w in range(len(parents)) if {i - 1, i} <= subtree(parents, w)]
        gaps.append(min(heights[w] for w in holders))
    return gaps


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    """Parents of one tree, attached in random order."""
    size = draw(st.integers(1, 9))
    order = draw(st.permutations(range(size)))
    parents = [0] * size
    parents[order[0]] = order[0]
    for place in range(1, size):
        parents[order[place]] = order[draw(st.integers(0, place - 1))]
    return parents


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8), st.sampled_from([0.5, 10.0]))
def test_gates_equal_the_loop(distances: list[float], temperature: float) -> None:
    gates = supervised_gates(torch.tensor([distances], dtype=torch.float64), temperature)
    torch.testing.assert_close(gates[0], slow_gates(distances, temperature))


def test_their_gradient_is_right_and_finite() -> None:
    torch.manual_seed(0)
    distances = torch.randn(2, 5).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda d: supervised_gates(d, 2.0), distances)
    assert supervised_log_gates(torch.tensor([0.0, 9999.0, 0.0])).isfinite().all()


def test_what_is_not_known_shuts_nothing() -> None:
    distances = torch.tensor([[1.0, float("nan"), 4.0, 2.0], [float("nan")] * 4])
    gates = supervised_gates(distances)
    assert gates[1].eq(1).all()
    assert gates[0].isfinite().all() and gates[0, 0, 2] == 1 and gates[0, 0, 3] < 0.5


@given(trees())
def test_heights_equal_the_loop(parents: list[int]) -> None:
    columns = torch.arange(len(parents))
    assert gap_heights(torch.tensor(parents), columns).tolist() == slow_heights(parents)


def test_a_tree_by_hand() -> None:
    """The man | who slept | laughed: relative clause inside the subject."""
    parents = torch.tensor([1, 4, 3, 1, 4])
    assert gap_heights(parents, torch.arange(5)).tolist() == [3, 2, 2, 1, 3]


def test_subwords_of_a_word_are_not_separated() -> None:
    parents, words = torch.tensor([2, 1, 2, 3]), torch.tensor([0, 0, 2, 2])
    assert gap_heights(parents, words).tolist() == [1, 0, 1, 0]
