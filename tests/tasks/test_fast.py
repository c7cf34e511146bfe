import copy
from typing import Any

import pytest
import torch
from fairseq import optim
from fairseq.dataclass.configs import FairseqConfig
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.optim.adam import FairseqAdamConfig
from omegaconf import OmegaConf
from torch import nn
from torch.nn import functional as F

from syncattn_fairseq.tasks import fast_cpu
from syncattn_fairseq.tasks.fast_cpu import replace_dropout, take_step


def make(parameters: list[nn.Parameter], **options: Any) -> Any:
    cfg = OmegaConf.structured(FairseqConfig)
    OmegaConf.set_struct(cfg, False)
    cfg.optimizer = OmegaConf.structured(FairseqAdamConfig(adam_betas="(0.9, 0.98)", **options))
    cfg.optimizer._name, cfg.optimizer.lr = "adam", [0.01]
    return optim.build_optimizer(cfg.optimizer, parameters)


def draw() -> list[nn.Parameter]:
    torch.manual_seed(1)
    return [nn.Parameter(torch.randn(shape)) for shape in ((3, 50), (7,), (2, 2))]


def gradients(step: int) -> list[torch.Tensor | None]:
    like = draw()
    torch.manual_seed(step)
    drawn: list[torch.Tensor | None] = [torch.randn_like(p) * step * 1e-4 for p in like]
    if step < 3:  # a parameter that is first used later
        drawn[1] = None
    return drawn


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "adam_eps": 1e-3}])
def test_the_step_is_fairseqs_and_so_is_the_state(options):
    """Either continues where the other stopped."""
    sides = [draw(), draw()]
    optimizers = [make(side, **options) for side in sides]
    for step in range(1, 9):
        if step == 5:
            states = [copy.deepcopy(optimizer.state_dict()) for optimizer in optimizers]
            assert [[*s] for s in states[0]["state"].values()] == [
                [*s] for s in states[1]["state"].values()
            ]
            optimizers = [make(side, **options) for side in sides]
            for optimizer, state in zip(optimizers, reversed(states), strict=True):
                optimizer.load_state_dict(state)
        for side in sides:
            for parameter, gradient in zip(side, gradients(step), strict=True):
                parameter.grad = gradient
        optimizers[0].step()
        assert take_step(optimizers[1])
        for expected, actual in zip(*sides, strict=True):
            torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-7)
    assert not torch.equal(sides[1][0], draw()[0])


def test_other_steps_are_left_to_fairseq(monkeypatch):
    parameters = [nn.Parameter(torch.ones(3, dtype=torch.float64))]
    parameters[0].grad = torch.ones(3, dtype=torch.float64)
    assert not take_step(make(parameters))
    other: Any = torch.optim.SGD(parameters, 0.1)
    assert not take_step(other)
    plain = draw()
    optimizer = make(plain)
    for group in optimizer.param_groups:
        group["amsgrad"] = True
    assert not take_step(optimizer)
    monkeypatch.setattr(fast_cpu, "_HAS_KERNEL", False)
    assert not take_step(make(draw()))


@pytest.mark.parametrize("fast", [False, True])
def test_dropout_is_replaced_and_only_in_training(fast):
    model = nn.Sequential(nn.Linear(2, 2), FairseqDropout(0.5))
    replace_dropout(model, fast)
    x = torch.ones(2000, 2)
    torch.manual_seed(1)
    actual = model[1](x)
    torch.manual_seed(1)
    assert torch.equal(actual, fast_cpu.fast_dropout(x, 0.5) if fast else F.dropout(x, 0.5))
    assert torch.equal(model.eval()[1](x), x)
