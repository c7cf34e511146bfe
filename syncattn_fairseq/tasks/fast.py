"""Faster replacements of fairseq's dropout and optimizer.

On a CPU, both are faster still with ``--fast``, and no longer fairseq's in their last digits.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.optim.adam import Adam, FairseqAdam
from fairseq.optim.fp16_optimizer import FP16Optimizer
from torch import Tensor, nn

from ..modules.dropout import fast_dropout, same_dropout


class SameDropout(FairseqDropout):
    """fairseq's dropout, computed faster on a CPU with the same random numbers."""

    drop = staticmethod(same_dropout)

    def forward(self, x: Tensor, inplace: bool = False) -> Tensor:
        """Return ``x`` with random elements dropped in training, or else unchanged."""
        if self.p > 0 and (self.training or self.apply_during_inference):
            return self.drop(x, self.p)
        return x


class FastDropout(SameDropout):
    """Dropout with cheaper random numbers than fairseq's, for ``--fast`` on a CPU."""

    drop = staticmethod(fast_dropout)


def replace_dropout(model: nn.Module, fast: bool = False) -> None:
    """Replace fairseq's dropout modules in a model by faster ones.

    With ``fast``, these also draw cheaper random numbers than fairseq's.
    """
    for module in model.modules():
        if type(module) is FairseqDropout:
            module.__class__ = FastDropout if fast else SameDropout


class FusedAdam(Adam):
    """fairseq's Adam, computed by PyTorch's fused kernel in one pass over the memory.

    The state is fairseq's own, so checkpoints are, too. The kernel corrects the bias of the second
    moment before it adds epsilon, fairseq after: it gets an epsilon that makes both the same.
    """

    def step(self, closure: Any = None) -> Any:
        """Update the parameters with the fused kernel, or else with fairseq's own code.

        The kernel has no closure and no AMSGrad, and takes only plain float32 tensors.
        """
        moved = [[p for p in group["params"] if p.grad is not None] for group in self.param_groups]
        tensors = [x for parameters in moved for p in parameters for x in (p, p.grad)]
        if (
            closure is not None
            or any(group.get("amsgrad") for group in self.param_groups)
            or any(x.dtype != torch.float32 or x.layout != torch.strided for x in tensors)
        ):
            return super().step(closure)
        with torch.no_grad():
            for group, parameters in zip(self.param_groups, moved, strict=True):
                self._move(group, parameters)
        return None

    def _move(self, group: dict[str, Any], parameters: list[nn.Parameter]) -> None:
        # By their steps, since some may have had no gradient at first.
        together: defaultdict[Any, list[nn.Parameter]] = defaultdict(list)
        for parameter in parameters:
            state = self.state[parameter]
            state["step"] = state.get("step", 0) + 1
            for name in ("exp_avg", "exp_avg_sq"):  # a checkpoint may hold them in half precision
                old = state.get(name)
                state[name] = torch.zeros_like(parameter) if old is None else old.to(parameter)
            together[state["step"], parameter.device].append(parameter)
        beta1, beta2 = group["betas"]
        for (steps, device), parameters in together.items():
            torch._fused_adamw_(
                [*parameters],
                [p.grad for p in parameters],  # type: ignore[misc]
                [self.state[p]["exp_avg"] for p in parameters],
                [self.state[p]["exp_avg_sq"] for p in parameters],
                [],
                [torch.full((), float(steps), device=device)] * len(parameters),
                amsgrad=False,
                lr=float(group["lr"]),
                beta1=beta1,
                beta2=beta2,
                weight_decay=group["weight_decay"],
                eps=group["eps"] / math.sqrt(1 - beta2**steps),
                maximize=False,
            )


def fuse_optimizer(optimizer: Any, on_cpu: bool = False) -> None:
    """Let fairseq's Adam update, clip and convert all parameters in few fused operations.

    Another optimizer stays as it is, as does one for parameters in half precision alone. On a CPU,
    where the numbers differ in their last digits, only if asked for.
    """
    inner = getattr(optimizer, "fp32_optimizer", optimizer)
    if type(inner) is not FairseqAdam or type(inner.optimizer) is not Adam:
        return
    if not on_cpu and any(p.device.type == "cpu" for p in inner.params):
        return
    inner.optimizer.__class__ = FusedAdam
    inner.clip_grad_norm = partial(_clip, inner)
    if type(optimizer) is FP16Optimizer:
        optimizer._sync_fp16_grads_to_fp32 = partial(_copy_gradients, optimizer)
        optimizer._sync_fp32_params_to_fp16 = partial(_copy_parameters, optimizer)
        optimizer.zero_grad = partial(_forget_gradients, optimizer)


def _clip(optimizer: Any, max_norm: float, aggregate_norm_fn: Any = None) -> Tensor:
    """Clip gradients as fairseq does, and return their norm before clipping."""
    parameters = [p for p in optimizer.params if p.grad is not None]
    gradients = [p.grad.detach() for p in parameters]
    if len({g.device for g in gradients}) != 1 or any(hasattr(p, "expert") for p in parameters):
        norm: Tensor = FairseqAdam.clip_grad_norm(optimizer, max_norm, aggregate_norm_fn)
        return norm
    norm = torch.stack(torch._foreach_norm(gradients)).norm()
    if aggregate_norm_fn is not None:
        norm = aggregate_norm_fn(norm)
    if max_norm > 0:
        torch._foreach_mul_(gradients, (max_norm / (norm + 1e-6)).clamp_(max=1))
    return norm


def _pair(optimizer: FP16Optimizer) -> Iterator[tuple[nn.Parameter, Tensor, Tensor]]:
    """Yield each parameter in half precision, its float32 copy, and the copy's gradient."""
    if not isinstance(optimizer.fp32_params, dict):
        for p, copy in zip(optimizer.fp16_params, optimizer.fp32_params, strict=True):
            if copy.grad is None:
                copy.grad = torch.zeros_like(copy)
            yield p, copy.data, copy.grad
        return
    for device, flat in optimizer.fp32_params.items():
        parameters = [p for p in optimizer.fp16_params if p.device.index == device]
        sizes = [p.numel() for p in parameters]
        parts = zip(parameters, flat.data.split(sizes), flat.grad.split(sizes), strict=True)
        for p, copy, gradient in parts:
            yield p, copy.view_as(p), gradient.view_as(p)


def _copy_gradients(optimizer: Any) -> None:
    if not optimizer._needs_sync:
        return
    pairs = [(p.grad, gradient) for p, _, gradient in _pair(optimizer)]
    if missing := [gradient for half, gradient in pairs if half is None]:
        torch._foreach_zero_(missing)
    if halves := [half for half, _ in pairs if half is not None]:
        torch._foreach_copy_([gradient for half, gradient in pairs if half is not None], halves)
    optimizer._needs_sync = False


def _copy_parameters(optimizer: Any) -> None:
    halves, copies, _ = zip(*_pair(optimizer), strict=True)
    torch._foreach_copy_([p.data for p in halves], list(copies))


def _forget_gradients(optimizer: Any) -> None:
    for p in optimizer.fp16_params:
        p.grad = None
    torch._foreach_zero_([gradient for _, _, gradient in _pair(optimizer)])
    optimizer._needs_sync = False
    if optimizer.scaler is not None:
        optimizer._multiply_factor = 1.0 / float(optimizer.scaler.loss_scale)
