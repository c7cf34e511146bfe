import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.functional import parent_gaussian, parent_scaled_scores
from syncattn_fairseq.functional.pascal import density_peak
from tests.functional import reference

lengths = st.integers(1, 7)
stds = st.sampled_from([0.5, 1.0, 2.0])
seeds = st.integers(0, 2**31)


def random_parents(batch: int, length: int) -> torch.Tensor:
    parents = torch.randint(0, 2 * length - 1, (batch, length)) / 2
    return parents.masked_fill(torch.rand(batch, length) < 0.2, float("nan"))


@given(lengths, stds, seeds)
def test_parent_gaussian_equals_the_loop(T, std, seed):
    torch.manual_seed(seed)
    parents = random_parents(3, T)
    reference.check(2, parent_gaussian, parents, shared=[T, std])


def test_the_density_of_the_paper():
    """With σ = 1 a parent on a column has 0.3989, a neighbour 0.2420, and half-way 0.3521."""
    weights = parent_gaussian(torch.tensor([[1.0, 0.5, float("nan")]]), 3)
    assert weights[0, 0].tolist() == pytest.approx([0.2420, 0.3989, 0.2420], abs=5e-5)
    assert weights[0, 1].tolist() == pytest.approx([0.3521, 0.3521, 0.1295], abs=5e-5)
    assert weights[0, 2].tolist() == [1, 1, 1]
    assert density_peak() == pytest.approx(1 / math.sqrt(2 * math.pi))


@given(lengths, st.integers(1, 5), stds, seeds)
def test_parent_scaled_scores_equal_the_loop(T, d, std, seed):
    torch.manual_seed(seed)
    query, key, parents = torch.randn(2, 3, T, d), torch.randn(2, 3, T, d), random_parents(2, T)
    weights = parent_gaussian(parents, T, std).unsqueeze(1).expand(-1, 3, -1, -1)
    reference.check(2, parent_scaled_scores, query, key, weights)


def test_a_deviation_of_0_leaves_the_parent_alone():
    parents = torch.tensor([[2.0, 0.5, float("nan")]])
    weights = parent_gaussian(parents, 3, std=0)
    assert weights.tolist() == [[[0, 0, 1], [0.5, 0.5, 0], [1, 1, 1]]]
    assert density_peak(0) == 1
