import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.functional import project_attention, sync_attention_loss
from tests.functional import reference

sizes = st.integers(1, 5)
seeds = st.integers(0, 2**31)


@given(sizes, sizes, sizes, st.booleans(), seeds)
def test_project_attention_equals_the_loop(B, T, S, own_backward, seed):
    torch.manual_seed(seed)
    tensors = [torch.randn(B, *size).softmax(-1) for size in ((S, S), (T, S), (S, T))]
    tensors = tensors if own_backward else tensors[:2]
    reference.check(1, project_attention, *tensors)


@given(sizes, sizes, st.booleans(), st.booleans(), seeds)
def test_sync_attention_loss_equals_the_loop(B, T, padded, causal, seed):
    torch.manual_seed(seed)
    target, projected = torch.randn(B, T, T).softmax(-1), torch.randn(B, T, T)
    padding = torch.arange(T) >= torch.randint(1, T + 1, (B, 1)) if padded else None
    if padding is not None:  # on the left in even rows
        padding[::2] = padding[::2].flip(-1)
    loss = sync_attention_loss(target, projected, padding, causal)
    expected = reference.sync_attention_loss(target.double(), projected.double(), padding, causal)
    assert loss.item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_padding_changes_nothing_and_carries_no_gradient():
    torch.manual_seed(0)
    target, projected = torch.randn(1, 3, 3).tril().exp(), torch.randn(1, 3, 3)
    alone = sync_attention_loss(target, projected)
    for side in ((0, 2, 0, 2), (2, 0, 2, 0)):
        wide_target = torch.nn.functional.pad(target, side, value=float("nan")).requires_grad_()
        wide_projected = torch.nn.functional.pad(projected, side, value=7.0).requires_grad_()
        padding = torch.nn.functional.pad(torch.zeros(1, 3, dtype=torch.bool), side[:2], value=True)
        loss = sync_attention_loss(wide_target, wide_projected, padding)
        torch.testing.assert_close(loss, alone)
        loss.backward()
        for x in (wide_target, wide_projected):
            assert x.grad is not None and x.grad.isfinite().all()
            assert x.grad[padding].abs().max() == 0
