from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from syncattn_fairseq.modules import dropout
from syncattn_fairseq.modules.dropout import fast_dropout, same_dropout


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many numbers were drawn by us at a time."""
    drawn: list[int] = []
    dropout._draws_one_by_one()  # which draws, too, once
    draw = dropout._draw
    monkeypatch.setattr(dropout, "_draw", lambda x, *a: (drawn.append(x.numel()), draw(x, *a))[1])
    return drawn


def run(drop: Callable[[Tensor, float], Tensor], x: Tensor, p: float) -> list[Tensor]:
    """Return what is kept, its gradient, and a random number drawn afterwards."""
    torch.manual_seed(5)
    x = x.clone().requires_grad_()
    dropped = drop(x, p)
    (gradient,) = torch.autograd.grad((dropped * torch.arange(len(x)).view(-1, 1)).sum(), x)
    return [dropped, gradient, torch.rand(3)]


@pytest.mark.parametrize("size", [1, 2**15 - 1, 2**15, 2**16 + 3])
@pytest.mark.parametrize("p", [1e-3, 0.1, 0.3, 0.5, 0.7, 0.999])
def test_every_bit_is_pytorchs(p, size, draws):
    x = torch.randn(size, 2)
    assert all(map(torch.equal, run(F.dropout, x, p), run(same_dropout, x, p)))
    assert draws == ([2 * size] if dropout._draws_one_by_one() else [])


def test_pytorch_draws_one_by_one_without_mkl():
    cpu = Path("/proc/cpuinfo")
    if cpu.exists() and "AuthenticAMD" in cpu.read_text():  # elsewhere, either may be
        assert dropout._draws_one_by_one()


def test_other_tensors_are_left_to_pytorch(draws):
    x = torch.randn(5, 3)
    for other, p in [(x.double(), 0.5), (x.half(), 0.5), (x.t(), 0.5), (x, 0.0), (x, 1.0)]:
        assert all(map(torch.equal, run(F.dropout, other, p), run(same_dropout, other, p)))
    assert not draws


def test_other_random_numbers_are_noticed(monkeypatch):
    """MKL's, on CPUs of Intel."""
    x = torch.randn(50, 2)
    expected = run(F.dropout, x, 0.3)
    right = dropout._draw
    dropout._draws_one_by_one.cache_clear()
    monkeypatch.setattr(dropout, "_draw", lambda x, p, *a: right(x, 1 - p, *a))
    assert not dropout._draws_one_by_one()
    assert all(map(torch.equal, expected, run(same_dropout, x, 0.3)))
    dropout._draws_one_by_one.cache_clear()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize("p", [0.05, 0.1, 0.5, 0.9])
def test_numbers_are_dropped_independently_and_the_mean_stays(p, dtype):
    torch.manual_seed(1)
    dropped = fast_dropout(torch.ones(400_003, dtype=dtype), p)  # not a multiple of four
    mask = dropped != 0
    assert dropped[mask].unique().tolist() == pytest.approx([1 / (1 - p)], rel=1e-3)
    deviation = (p * (1 - p) / len(mask)) ** 0.5
    for start in range(4):  # the four numbers of a word of random bits
        rate = (~mask)[start::4].double().mean().item()
        assert abs(rate - p) < 10 * deviation
    both = (~mask[:-1] & ~mask[1:]).double().mean().item()
    assert abs(both - p * p) < 10 * deviation


def test_a_seed_gives_the_same_masks_and_the_gradient_has_them():
    def drop(seed: int) -> tuple[Tensor, Tensor]:
        torch.manual_seed(seed)
        x = torch.randn(5, 7, 3).transpose(0, 1).requires_grad_()
        dropped = fast_dropout(x, 0.4)
        (gradient,) = torch.autograd.grad(dropped.sum(), x)
        assert torch.equal(dropped, x * gradient)
        return dropped, torch.rand(3)

    assert all(map(torch.equal, drop(1), drop(1)))
    assert not torch.equal(drop(1)[0], drop(2)[0])


def test_all_or_nothing():
    x = torch.randn(3, 3)
    assert fast_dropout(x, 1.0).eq(0).all()
    assert torch.equal(fast_dropout(x, 0.0), x)
