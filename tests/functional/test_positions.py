import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from syncattn_fairseq.functional import (
    alibi_slopes,
    linear_biases,
    relative_buckets,
    rotary_angles,
    rotate,
)

seeds = st.integers(0, 2**31)
sizes = st.integers(1, 6)


@pytest.mark.parametrize(
    ("heads", "exponents"),
    [
        (1, [8]),
        (2, [4, 8]),
        (3, [4, 8, 2]),
        (6, [2, 4, 6, 8, 1, 3]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
        (16, [n / 2 for n in range(1, 17)]),
    ],
)
def test_slopes_are_the_published_ones(heads, exponents):
    torch.testing.assert_close(alibi_slopes(heads), torch.tensor([2.0**-n for n in exponents]))


@given(sizes, sizes, sizes, seeds)
def test_linear_biases_equal_the_loop(T, S, heads, seed):
    torch.manual_seed(seed)
    distances, slopes = torch.randint(0, 9, (2, T, S)), torch.rand(heads).double()
    biases = linear_biases(distances, slopes)
    assert biases.shape == (2, heads, T, S)
    for b, rows in enumerate(distances.tolist()):
        for h, slope in enumerate(slopes.tolist()):
            expected = [[-slope * distance for distance in row] for row in rows]
            torch.testing.assert_close(biases[b, h], torch.tensor(expected).double())


def slow_bucket(offset: int, causal: bool, buckets: int, furthest: int) -> int:
    """In whole numbers: exact + k if (furthest / exact)^k <= (distance / exact)^(buckets - exact).

    That is what the logarithms say.
    """
    side = 0
    if not causal:
        buckets //= 2
        side = buckets if offset > 0 else 0
        distance = abs(offset)
    else:
        distance = max(0, -offset)
    exact = buckets // 2
    if distance < exact:
        return side + distance
    coarse = buckets - exact
    reached = Fraction(distance, exact) ** coarse
    growth = Fraction(furthest, exact)
    return side + exact + max(k for k in range(coarse) if growth**k <= reached)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (8, 20), (16, 64)])
def test_buckets_equal_the_loop(causal, buckets, furthest):
    offsets = torch.arange(-300, 301)
    expected = [slow_bucket(offset, causal, buckets, furthest) for offset in offsets.tolist()]
    assert relative_buckets(offsets, causal, buckets, furthest).tolist() == expected


def test_buckets_by_hand():
    distances = torch.tensor([0, 1, 7, 8, 11, 12, 15, 16, 31, 32, 64, 90, 91, 127, 128, 1000])
    left = [0, 1, 7, 8, 8, 9, 9, 10, 11, 12, 14, 14, 15, 15, 15, 15]
    assert relative_buckets(-distances).tolist() == left
    assert relative_buckets(distances).tolist() == [0, *(16 + bucket for bucket in left[1:])]
    causal = [0, 1, 7, 8, 11, 12, 15, 16, 21, 21, 26, 29, 29, 31, 31, 31]
    assert relative_buckets(-distances, causal=True).tolist() == causal
    assert relative_buckets(distances, causal=True).eq(0).all()


def test_no_bucket_depends_on_the_last_bit_of_a_logarithm(monkeypatch):
    offsets = torch.arange(-300, 301)
    exact = relative_buckets(offsets)
    log = Tensor.log
    for factor in (1 - 1e-6, 1 + 1e-6):
        monkeypatch.setattr(Tensor, "log", lambda x, factor=factor: log(x) * factor)
        assert relative_buckets(offsets).equal(exact)


@given(st.integers(1, 4), st.integers(1, 5), seeds)
def test_turned_states_equal_the_loop(pairs, length, seed):
    torch.manual_seed(seed)
    states, positions = torch.randn(2, length, 2 * pairs).double(), torch.randint(0, 50, (length,))
    turned = rotate(states, rotary_angles(positions.double(), 2 * pairs))
    for b in range(2):
        for t, position in enumerate(positions.tolist()):
            row = states[b, t].tolist()
            for k in range(pairs):
                angle = position * 10000.0 ** (-2 * k / (2 * pairs))
                number = complex(row[2 * k], row[2 * k + 1])
                number *= complex(math.cos(angle), math.sin(angle))
                pair = turned[b, t, 2 * k : 2 * k + 2].tolist()
                assert pair == pytest.approx([number.real, number.imag])


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 500), seeds)
def test_dot_products_depend_on_the_difference_only(q, k, moved, seed):
    torch.manual_seed(seed)
    query, key = torch.randn(2, 1, 8).double()

    def score(m: int, n: int) -> float:
        angles = rotary_angles(torch.tensor([m, n]).double(), 8)
        return float((rotate(query, angles[:1]) * rotate(key, angles[1:])).sum())

    assert score(q, k) == pytest.approx(score(q + moved, k + moved), abs=1e-9)
    assert score(q, q) == pytest.approx(float((query * key).sum()), abs=1e-9)


def test_turning_keeps_lengths_and_types_and_has_the_right_gradient():
    torch.manual_seed(0)
    angles = rotary_angles(torch.arange(5), 6)
    assert angles.dtype == torch.float32
    states = torch.randn(2, 5, 6)
    turned = rotate(states, angles)
    torch.testing.assert_close(turned.norm(dim=-1), states.norm(dim=-1))
    half = rotate(states.half(), angles)
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.float(), turned, atol=5e-3, rtol=1e-2)
    assert torch.autograd.gradcheck(
        lambda x: rotate(x, angles.double()), states.double().requires_grad_()
    )
