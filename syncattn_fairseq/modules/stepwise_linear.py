"""A linear layer that is applied step by step, and learns from all steps at once."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

#: The input of each step, and the gradient of its output.
_Tape = list[tuple[Tensor, Tensor]]


class StepwiseLinear:
    """A linear layer for one pass of a recurrent network.

    Its gradients are sums over steps. PyTorch would launch four kernels at each step to multiply
    and to add them; this launches two at the end, with the numbers of all steps.

    Args:
        weight: ``(N, D)``.
        bias: ``(N)``.
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._tape: _Tape = []
        self._weight, self._bias = _Collect.apply(weight, bias, self._tape)

    def __call__(self, x: Tensor) -> Tensor:
        """Project ``(B, D)`` to ``(B, N)``."""
        return _Step.apply(x, self._weight, self._bias, self._tape)


class _Step(torch.autograd.Function):
    """The product of one step; the parameters' gradients are left to :class:`_Collect`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, tape: _Tape) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.tape = tape
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradient.to(weight.dtype)  # narrower under autocast
        ctx.tape.append((x.detach(), gradient))
        return gradient @ weight, None, None, None


class _Collect(torch.autograd.Function):
    """Passes on the parameters; in the backward pass, it comes after all steps."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, tape: _Tape) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.tape = tape
        return weight.view_as(weight), bias.view_as(bias)

    @staticmethod
    def backward(ctx: Any, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        xs, gradients = (torch.cat(numbers) for numbers in zip(*ctx.tape, strict=True))
        ctx.tape.clear()
        return gradients.transpose(0, 1) @ xs.to(gradients.dtype), gradients.sum(0), None
