from __future__ import annotations

import pytest
import torch
from torch import Tensor

from syncattn_fairseq.modules.fast_dropout import fast_dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize("p", [0.05, 0.1, 0.5, 0.9])
def test_numbers_are_dropped_independently_and_the_mean_stays(p: float, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    dropped = fast_dropout(torch.ones(400_003, dtype=dtype), p)  # not a multiple of four
    kept = dropped != 0
    assert dropped[kept].unique().tolist() == pytest.approx([1 / (1 - p)], rel=1e-3)
    deviation = (p * (1 - p) / len(kept)) ** 0.5
    for start in range(4):  # the four numbers of a word of random bits
        rate = (~kept)[start::4].double().mean().item()
        assert abs(rate - p) < 10 * deviation
    both = (~kept[:-1] & ~kept[1:]).double().mean().item()
    assert abs(both - p * p) < 10 * deviation


def test_a_seed_gives_the_same_masks_and_the_gradient_has_them() -> None:
    def drop(seed: int) -> tuple[Tensor, Tensor]:
        torch.manual_seed(seed)
        x = torch.randn(5, 7, 3).transpose(0, 1).requires_grad_()
        dropped = fast_dropout(x, 0.4)
        (gradient,) = torch.autograd.grad(dropped.sum(), x)
        assert torch.equal(dropped, x * gradient)
        return dropped, torch.rand(3)

    assert all(map(torch.equal, drop(1), drop(1)))
    assert not torch.equal(drop(1)[0], drop(2)[0])


def test_all_or_nothing() -> None:
    x = torch.randn(3, 3)
    assert fast_dropout(x, 1.0).eq(0).all()
    assert torch.equal(fast_dropout(x, 0.0), x)
