"""What is faster than in fairseq on a CPU: its dropout, and more with ``--fast-cpu``.

With that option, trainings are no longer equal in their last digits.
"""

import math
from collections import defaultdict
from typing import Any

import torch
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.optim.adam import FairseqAdam
from torch import Tensor, nn

from ..modules.dropout import fast_dropout, same_dropout


class SameDropout(FairseqDropout):
    """fairseq's dropout, faster."""

    drop = staticmethod(same_dropout)

    def forward(self, x: Tensor, inplace: bool = False) -> Tensor:
        """Return x, part of it dropped in training."""
        if self.p > 0 and (self.training or self.apply_during_inference):
            return self.drop(x, self.p)
        return x


class FastDropout(SameDropout):
    """fairseq's dropout with cheap random numbers."""

    drop = staticmethod(fast_dropout)


def replace_dropout(model: nn.Module, fast: bool = False) -> None:
    """Give a model a faster dropout; ``fast``: with other random numbers, too."""
    for module in model.modules():
        if type(module) is FairseqDropout:
            module.__class__ = FastDropout if fast else SameDropout


def take_step(optimizer: Any) -> bool:
    """Take a step of fairseq's Adam in one pass over the memory, if all of it is in float32.

    The state is fairseq's own, so checkpoints are, too. The kernel corrects the bias of the second
    moment before it adds epsilon, fairseq after: it gets an epsilon that makes both the same.

    Returns:
        Whether the step was taken; fairseq must take it otherwise.
    """
    if type(optimizer) is not FairseqAdam or not _HAS_KERNEL:
        return False
    adam = optimizer.optimizer
    groups = adam.param_groups
    if any(group["amsgrad"] for group in groups):
        return False
    moved = [[p for p in group["params"] if p.grad is not None] for group in groups]
    if not all(_is_plain(p) and _is_plain(p.grad) for parameters in moved for p in parameters):
        return False
    with torch.no_grad():
        for group, parameters in zip(groups, moved, strict=True):
            _step(adam.state, group, parameters)
    return True


#: PyTorch before 2.4 has it for GPUs only.
_HAS_KERNEL = torch._C._dispatch_has_kernel_for_dispatch_key("aten::_fused_adamw_", "CPU")


def _is_plain(tensor: Tensor) -> bool:
    return (
        tensor.device.type == "cpu"
        and tensor.dtype == torch.float32
        and tensor.layout == torch.strided
    )


def _step(states: Any, group: dict[str, Any], parameters: list[nn.Parameter]) -> None:
    # By their steps, since some may have had no gradient at first.
    together: defaultdict[int, list[Any]] = defaultdict(list)
    for parameter in parameters:
        state = states[parameter]
        state["step"] = state.get("step", 0) + 1
        for name in ("exp_avg", "exp_avg_sq"):  # a checkpoint may hold them in half precision
            old = state.get(name)
            state[name] = torch.zeros_like(parameter) if old is None else old.to(parameter)
        together[state["step"]].append(parameter)
    beta1, beta2 = group["betas"]
    for steps, moved in together.items():
        torch._fused_adamw_(
            moved,
            [parameter.grad for parameter in moved],
            [states[parameter]["exp_avg"] for parameter in moved],
            [states[parameter]["exp_avg_sq"] for parameter in moved],
            [],
            [torch.tensor(float(steps))] * len(moved),
            amsgrad=False,
            lr=float(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            eps=group["eps"] / math.sqrt(1 - beta2**steps),
            maximize=False,
        )
