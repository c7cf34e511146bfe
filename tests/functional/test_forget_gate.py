import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from syncattn_fairseq.functional import forget_log_gates
from syncattn_fairseq.functional.controls.forget_gate import last_forget_log_gates

seeds = st.integers(0, 2**31)
lengths = st.integers(1, 8)


def slow_gates(log_forget: list[float]) -> list[list[float]]:
    places = range(len(log_forget))
    return [
        [sum(log_forget[n] for n in range(min(i, j) + 1, max(i, j) + 1)) for j in places]
        for i in places
    ]


def random_gates(length: int) -> Tensor:
    return F.logsigmoid(2 * torch.randn(2, length).double())


@given(lengths, seeds)
def test_gates_equal_the_loop(length, seed):
    torch.manual_seed(seed)
    log_forget = random_gates(length)
    expected = torch.tensor([slow_gates(row) for row in log_forget.tolist()]).double()
    torch.testing.assert_close(forget_log_gates(log_forget), expected)


@given(lengths, seeds)
def test_a_step_of_decoding_is_the_last_row(length, seed):
    torch.manual_seed(seed)
    log_forget = random_gates(length)
    total = log_forget.cumsum(-1)
    last = last_forget_log_gates(total, total[..., -1:].unsqueeze(-1))
    torch.testing.assert_close(last, forget_log_gates(log_forget)[..., -1:, :])


def test_their_gradient_is_finite():
    shut = torch.tensor([0.0, -1e4, 0.0], requires_grad=True)
    forget_log_gates(F.logsigmoid(shut)).exp().sum().backward()
    assert shut.grad is not None and shut.grad.isfinite().all()
