import copy
from typing import Any

import pytest
import torch
from fairseq import optim
from fairseq.dataclass.configs import FairseqConfig
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.optim.adam import Adam, FairseqAdamConfig
from fairseq.optim.fp16_optimizer import FP16Optimizer
from omegaconf import OmegaConf
from torch import nn
from torch.nn import functional as F

from syncattn_fairseq.tasks import fast
from syncattn_fairseq.tasks.fast import FusedAdam, fuse_optimizer, replace_dropout

BF16, FP16 = torch.bfloat16, torch.float16


def make(parameters: list[nn.Parameter], flat: bool = False, **options: Any) -> Any:
    """Make fairseq's Adam for parameters of any type; ``flat``: with their copies in one tensor."""
    half = {torch.float32: "", BF16: "bf16", FP16: "fp16"}[parameters[0].dtype]
    common = {"fp16_scale_window": 4, "fp16_no_flatten_grads": not flat, "fp16_init_scale": 4}
    cfg = OmegaConf.merge(OmegaConf.structured(FairseqConfig), {"common": common})
    OmegaConf.set_struct(cfg, False)
    cfg.optimizer = OmegaConf.structured(FairseqAdamConfig(adam_betas="(0.9, 0.98)", **options))
    cfg.optimizer._name, cfg.optimizer.lr = "adam", [0.01]
    if not half:
        return optim.build_optimizer(cfg.optimizer, parameters)
    cfg.common[half] = True
    return FP16Optimizer.build_optimizer(cfg, parameters)


def draw(dtype: torch.dtype) -> list[nn.Parameter]:
    torch.manual_seed(1)
    return [nn.Parameter(torch.randn(shape).to(dtype)) for shape in ((3, 50), (7,), (2, 2))]


def update(optimizer: Any, parameters: list[nn.Parameter], step: int) -> Any:
    """Make an update as fairseq's trainer does; return the norm of the gradients."""
    torch.manual_seed(step)
    optimizer.zero_grad()
    optimizer.backward(torch.stack([p.sum() for p in parameters]).sum())
    for number, parameter in enumerate(parameters):
        drawn = torch.randn(parameter.shape) * step * 1e-2
        parameter.grad = drawn.to(parameter.dtype)
        if step < 3 and number == 1:  # first used later
            parameter.grad = None
    optimizer.multiply_grads(1 / 3)
    norm = optimizer.clip_grad_norm(0.01 if step % 2 else 0)
    optimizer.step()
    return norm


@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        (torch.float32, {}),
        (torch.float32, {"weight_decay": 0.1, "adam_eps": 1e-3}),
        (BF16, {"weight_decay": 0.1}),
        (FP16, {}),
        (FP16, {"flat": True}),
    ],
)
def test_updates_are_fairseqs_and_so_is_the_state(monkeypatch, dtype, options):
    """Either continues where the other stopped."""
    monkeypatch.setattr("torch.cuda.current_device", lambda: None)  # the index of a CPU
    sides = [draw(dtype), draw(dtype)]
    optimizers = [make(side, **options) for side in sides]
    fuse_optimizer(optimizers[1], on_cpu=True)
    for step in range(1, 9):
        if step == 5:
            states = [copy.deepcopy(optimizer.state_dict()) for optimizer in optimizers]
            assert [[*s] for s in states[0]["state"].values()] == [
                [*s] for s in states[1]["state"].values()
            ]
            optimizers = [make(side, **options) for side in sides]
            fuse_optimizer(optimizers[1], on_cpu=True)
            for optimizer, state in zip(optimizers, reversed(states), strict=True):
                optimizer.load_state_dict(state)
        norms = [update(o, side, step) for o, side in zip(optimizers, sides, strict=True)]
        assert type(optimizers[1].optimizer) is FusedAdam
        torch.testing.assert_close(norms[1], norms[0])
        rough = 1e-6 if dtype == torch.float32 else torch.finfo(dtype).eps
        torch.testing.assert_close(*sides, rtol=rough, atol=1e-7)
    assert not torch.equal(sides[1][0], draw(dtype)[0])


def test_the_copies_forget_gradients_that_are_gone():
    parameters = draw(BF16)
    optimizer = make(parameters)
    fuse_optimizer(optimizer, on_cpu=True)
    update(optimizer, parameters, 3)
    optimizer.zero_grad()
    optimizer.backward(parameters[0].sum())
    assert optimizer.clip_grad_norm(0) == pytest.approx(150**0.5)
    optimizer.zero_grad()
    assert all(not copy.grad.any() for copy in optimizer.fp32_params)


def test_groups_move_with_their_own_rates():
    sides = [draw(torch.float32), draw(torch.float32)]
    optimizers = [make(side) for side in sides]
    for optimizer in optimizers:
        first, *rest = optimizer.param_groups[0]["params"]
        optimizer.param_groups[0]["params"] = [first]
        optimizer.optimizer.add_param_group({"params": rest, "lr": 0.5, "weight_decay": 0.1})
    fuse_optimizer(optimizers[1], on_cpu=True)
    for optimizer, side in zip(optimizers, sides, strict=True):
        update(optimizer, side, 3)
    torch.testing.assert_close(*sides, rtol=1e-6, atol=1e-7)


def test_the_rest_is_left_to_fairseq():
    other: Any = torch.optim.SGD(draw(torch.float32), 0.1)
    fuse_optimizer(other, on_cpu=True)
    assert type(other) is torch.optim.SGD
    plain = make(draw(torch.float32))
    fuse_optimizer(plain)
    assert type(plain.optimizer) is Adam, "on a CPU, only with --fast"
    for dtype, amsgrad in ((torch.float64, False), (torch.float32, True)):
        sides = [[nn.Parameter(torch.ones(3, dtype=dtype))] for _ in range(2)]
        for side, kind in zip(sides, (Adam, FusedAdam), strict=True):
            side[0].grad = torch.full((3,), 2.0, dtype=dtype)
            kind(side, amsgrad=amsgrad).step()
        assert torch.equal(*(side[0] for side in sides))


@pytest.mark.parametrize("cheap", [False, True])
def test_dropout_is_replaced_and_only_in_training(cheap):
    model = nn.Sequential(nn.Linear(2, 2), FairseqDropout(0.5))
    replace_dropout(model, cheap)
    x = torch.ones(2000, 2)
    torch.manual_seed(1)
    actual = model[1](x)
    torch.manual_seed(1)
    assert torch.equal(actual, fast.fast_dropout(x, 0.5) if cheap else F.dropout(x, 0.5))
    assert torch.equal(model.eval()[1](x), x)
