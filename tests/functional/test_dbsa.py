import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.functional import biaffine_scores, dependency_loss
from tests.functional import reference

sizes = st.integers(1, 6)
seeds = st.integers(0, 2**31)


@given(sizes, sizes, sizes, st.booleans(), seeds)
def test_biaffine_scores_equal_the_loop(T, S, d, bias, seed):
    torch.manual_seed(seed)
    query, key, weight = torch.randn(2, 3, T, d), torch.randn(2, 3, S, d), torch.randn(d, d)
    b = torch.randn(d) if bias else None
    reference.check(2, biaffine_scores, query, key, shared=[weight, b])


@given(sizes, sizes, st.booleans(), seeds)
def test_dependency_loss_equals_the_loop(B, T, causal, seed):
    torch.manual_seed(seed)
    attention, parents = torch.randn(B, T, T).softmax(-1), torch.randint(-1, T, (B, T))
    for row in parents:  # padded on either side
        start, end = sorted(torch.randint(0, T + 1, (2,)).tolist())
        row[:start] = row[end:] = -1
    total, count = dependency_loss(attention, parents, causal)
    expected, labels = reference.dependency_loss(attention.double(), parents, causal)
    assert count.item() == labels
    assert total.item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("gap", [60.0, 75.0, 80.0, 87.0, 90.0, 1e4])
def test_a_scaled_dependency_loss_is_finite_where_a_probability_underflows(dtype, gap):
    scores = torch.tensor([[[0.0, -gap], [0.0, 0.0]]], dtype=dtype, requires_grad=True)
    total, count = dependency_loss(scores.softmax(-1), torch.tensor([[1, -1]]))
    (total * 2.0**15).backward()
    assert scores.grad is not None and scores.grad.isfinite().all()
    most = 9.704 if dtype == torch.float16 else 69.08
    assert total.item() == pytest.approx(min(gap, most), abs=0.01)
    assert count.item() == 1
