import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from syncattn_fairseq.data.subwords import NO_HEAD, NO_TOKEN
from syncattn_fairseq.functional import gap_heights, supervised_log_gates
from syncattn_fairseq.modules.heads.controls.supervised_gate import collate_gap_heights
from tests.data.test_subwords import marks_of
from tests.functional.test_sdatt import random_parents, seeds
from tests.models import build


def slow_gates(distances: list[float], temperature: float) -> Tensor:
    """``distances[j]`` is that of word j to the word before it."""
    length = len(distances)
    gates = torch.ones(length, length).double()
    for t in range(length):
        for i in range(length):
            if i < t:  # the boundary before the query, and those from the key up to it
                pivot, others = t, range(i + 1, t)
            else:  # the boundary after the query, and those from it up to the key
                pivot, others = t + 1, range(t + 2, i + 1)
            for j in others:
                difference = distances[pivot] - distances[j]
                gates[t, i] *= (1 + math.tanh(difference / temperature)) / 2
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
    heights = [height(parents, i) for i in range(len(parents))]
    gaps = [0]  # before the first word there is none
    for i in range(1, len(parents)):
        holders = [w for w in range(len(parents)) if {i - 1, i} <= subtree(parents, w)]
        gaps.append(min(heights[w] for w in holders))
    return gaps


def supervised_gates(distances: Tensor, temperature: float = 10.0) -> Tensor:
    return supervised_log_gates(distances, temperature).exp()


lists = st.lists(st.floats(-3, 3), min_size=1, max_size=8)
temperatures = st.sampled_from([0.5, 10.0])


@given(lists, temperatures)
def test_gates_equal_the_loop(distances, temperature):
    gates = supervised_gates(torch.tensor([distances], dtype=torch.float64), temperature)
    torch.testing.assert_close(gates[0], slow_gates(distances, temperature))


def test_gates_of_a_tree_by_hand():
    """((a b) (c d)): from a, both words of the other phrase are out of sight; from b, none is."""
    gates = supervised_gates(torch.tensor([9.0, 1.0, 2.0, 1.0]), 0.2)
    expected = torch.tensor([[1.0, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1]])
    torch.testing.assert_close(gates, expected, atol=1e-4, rtol=0)


@given(lists, temperatures)
def test_the_gap_before_the_first_word_is_not_read(gaps, temperature):
    distances = torch.tensor(gaps).double()
    others = distances.index_fill(0, torch.tensor([0]), float("nan"))
    assert torch.equal(*(supervised_gates(d, temperature) for d in (distances, others)))


def words_as_columns(heads: list[int], lengths: list[int]) -> tuple[Tensor, Tensor]:
    """Return the parents and the words of subwords, for :func:`gap_heights`."""
    first = [sum(lengths[:word]) for word in range(len(heads))]
    words = [first[word] for word, count in enumerate(lengths) for _ in range(count)]
    parents = list(range(len(words)))
    for word, head in enumerate(heads):
        parents[first[word]] = first[head]
    return torch.tensor(parents), torch.tensor(words)


@given(st.integers(1, 9), seeds, temperatures)
def test_a_mirrored_sentence_has_mirrored_gates(size, seed, temperature):
    torch.manual_seed(seed)
    heads, lengths = random_parents(size).tolist(), torch.randint(1, 4, (size,)).tolist()
    mirrored = [size - 1 - head for head in reversed(heads)]
    gates, others = (
        supervised_gates(gap_heights(*words_as_columns(*sentence)).double(), temperature)
        for sentence in ((heads, lengths), (mirrored, lengths[::-1]))
    )
    torch.testing.assert_close(gates, others.flip(-1, -2))


def test_they_are_finite():
    assert supervised_log_gates(torch.tensor([0.0, 9999.0, 0.0])).isfinite().all()


def test_what_is_not_known_shuts_nothing():
    distances = torch.tensor([[1.0, float("nan"), 4.0, 2.0], [float("nan")] * 4])
    gates = supervised_gates(distances)
    assert gates[1].eq(1).all()
    assert gates[0].isfinite().all() and gates[0, 0].eq(1).all(), "its pivot is not known"
    assert gates[0, 1, 3] > 0.5 and gates[0, 3, 0] < 0.5


@given(st.integers(1, 9), seeds)
def test_heights_equal_the_loop(size, seed):
    torch.manual_seed(seed)
    parents = random_parents(size)
    assert gap_heights(parents, torch.arange(size)).tolist() == slow_heights(parents.tolist())


def test_a_tree_by_hand():
    """The man | who slept | laughed: relative clause inside the subject."""
    parents = torch.tensor([1, 4, 3, 1, 4])
    assert gap_heights(parents, torch.arange(5)).tolist() == [0, 2, 2, 1, 3]


def test_subwords_of_a_word_are_not_separated():
    parents, words = torch.tensor([2, 1, 2, 3]), torch.tensor([0, 0, 2, 2])
    assert gap_heights(parents, words).tolist() == [0, 0, 1, 0]


HEADS = [[2, 5, 4, 2, 0], [0, 1], [NO_HEAD] * 3]  # of words, from 1; 0 = root
LENGTHS = [[1, 2, 1, 3, 1], [2, 2], [1, 1, 1]]  # subwords


def lay_out(left: bool) -> tuple[Tensor, Tensor]:
    rows = [marks_of(*sentence) for sentence in zip(HEADS, LENGTHS, strict=True)]
    width = max(map(len, rows)) + 1
    marks, tokens = torch.full((3, width), NO_TOKEN), torch.full((3, width), build.PAD)
    for b, row in enumerate(rows):
        first = width - 1 - len(row) if left else 0
        marks[b, first : first + len(row)] = torch.tensor(row)
        tokens[b, first : first + len(row)] = 5
        tokens[b, first + len(row)] = build.EOS
    return marks, tokens


@pytest.mark.parametrize("left", [False, True])
def test_gap_heights_are_those_of_the_words(left):
    marks, tokens = lay_out(left)
    result = collate_gap_heights(marks, tokens, build.dictionary())
    assert result.dtype == torch.float64
    for b, (heads, lengths) in enumerate(zip(HEADS[:2], LENGTHS[:2], strict=True)):
        parents = [h - 1 if h else i for i, h in enumerate(heads)]
        root = heads.index(0)
        heights = slow_heights([*parents, root])  # the end of the sentence hangs from the root
        by_word = zip(heights[:-1], lengths, strict=True)
        at_first_subwords = [x for height, n in by_word for x in [height] + [0] * (n - 1)]
        inside = result[b][tokens[b] != build.PAD].tolist()
        # Before the first token there is no gap, and what stands there is not read.
        assert inside[1:] == [*at_first_subwords[1:], heights[-1]]
        assert result[b][tokens[b] == build.PAD].isnan().all()
    assert result[2].isnan().all()
