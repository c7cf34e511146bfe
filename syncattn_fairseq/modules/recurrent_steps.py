"""Steps of recurrent networks, with gradients of weights computed for all steps at once."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


def gru_step(inputs: Tensor, recurrent: Tensor, state: Tensor) -> Tensor:
    """Return the next state of a :class:`torch.nn.GRUCell`, given its projected inputs.

    .. math::
        r = σ(i_r + h_r)
        z = σ(i_z + h_z)
        n = tanh(i_n + r h_n)
        s' = (1 − z) n + z s

    On a GPU, it is the one kernel that the cell itself launches.

    Args:
        inputs: `[i_r; i_z; i_n] = W_i x + b_i`, ``(B, 3 d)``.
        recurrent: `[h_r; h_z; h_n] = W_h s + b_h`, ``(B, 3 d)``.
        state: s, ``(B, d)``.

    Returns:
        ``(B, d)``.
    """
    if inputs.is_cuda:
        return torch.ops.aten._thnn_fused_gru_cell(inputs, recurrent, state)[0]
    width = state.size(-1)
    input_gates, input_proposal = inputs.split([2 * width, width], dim=-1)
    recurrent_gates, recurrent_proposal = recurrent.split([2 * width, width], dim=-1)
    reset, update = torch.sigmoid(input_gates + recurrent_gates).chunk(2, dim=-1)
    proposed = torch.tanh(torch.addcmul(input_proposal, reset, recurrent_proposal))
    return torch.lerp(proposed, state, update)


#: A list of each step's input and the gradient of its output.
_Tape = list[tuple[Tensor, Tensor]]


class StepwiseLinear:
    """Linear layer for recurrent steps, with weight gradients computed for all steps at once.

    It is for one pass; its weight is ``(N, D)``, its bias ``(N)``.

    Its gradients are sums over steps. PyTorch would launch four kernels at each step to multiply
    and to add them; this launches two at the end, with the numbers of all steps.
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._tape: _Tape = []
        self._weight, self._bias = _Collect.apply(weight, bias, self._tape)

    def __call__(self, x: Tensor) -> Tensor:
        """Project one step's input ``(B, D)`` to ``(B, N)``."""
        return _Step.apply(x, self._weight, self._bias, self._tape)


class _Step(torch.autograd.Function):
    """The product of one step; the parameters' gradients are left to :class:`_Collect`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, tape: _Tape) -> Tensor:
        """Project the input of a step.

        Args:
            ctx: PyTorch's context for the backward pass.
            x: the input, ``(B, D)``.
            weight, bias: ``(N, D)`` and ``(N)``.
            tape: collects inputs and gradients in the backward pass.
        """
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
    """Identity of the parameters, whose backward pass comes after those of all steps."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, tape: _Tape) -> tuple[Tensor, Tensor]:
        """Return the parameters unchanged, as views, so that their gradients come after all steps.

        Args:
            ctx: PyTorch's context for the backward pass.
            weight, bias: ``(N, D)`` and ``(N)``.
            tape: the inputs and gradients of all steps.
        """
        ctx.set_materialize_grads(False)
        ctx.tape = tape
        return weight.view_as(weight), bias.view_as(bias)

    @staticmethod
    def backward(ctx: Any, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        xs, gradients = (torch.cat(numbers) for numbers in zip(*ctx.tape, strict=True))
        ctx.tape.clear()
        return gradients.transpose(0, 1) @ xs.to(gradients.dtype), gradients.sum(0), None
