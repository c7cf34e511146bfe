"""Label-smoothed cross-entropy with few passes over the scores of the whole vocabulary.

With a vocabulary of V subwords, N predicted tokens have N x V scores, the largest tensor of an
update, and each pass over them costs. fairseq makes two gradients of that size and adds them; the
softmax makes a third. Values and gradients here are fairseq's, bit for bit.
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

#: Number of scores in a block, which fit into a processor's cache.
BLOCK_SCORES = 2**19


def sum_smoothed_loss(
    log_probs: Tensor, target: Tensor, smoothing: float, padding: int
) -> tuple[Tensor, Tensor]:
    """Return label-smoothed cross-entropy and negative log-likelihood, summed over targets.

    ``smoothing`` is the probability given to the others in equal parts; targets that are padding do
    not count. Returns the loss and the negative log likelihood in nats, each a scalar.

    Args:
        log_probs: log-probabilities, ``[N, V]``.
        target: the right subwords, ``[N]``.
        smoothing: the probability shared by the wrong subwords.
        padding: the index of padding in the dictionary.
    """
    return _SmoothedLoss.apply(log_probs, target, smoothing, padding)


def sum_smoothed_loss_of_scores(
    scores: Tensor, target: Tensor, smoothing: float, padding: int
) -> tuple[Tensor, Tensor]:
    """Compute `sum_smoothed_loss` from unnormalised scores, at a lower cost on a CPU.

    Each block of scores [N, V] is in the processor's cache from its softmax to its gradient, which
    is computed at once.

    Args:
        scores: unnormalised scores, ``[N, V]``.
        target: the right subwords, ``[N]``.
        smoothing: the probability shared by the wrong subwords.
        padding: the index of padding in the dictionary.
    """
    return _SmoothedLossOfScores.apply(scores, target, smoothing, padding)


class _SmoothedLoss(Function):
    @staticmethod
    def forward(
        ctx: Any, log_probs: Tensor, target: Tensor, smoothing: float, padding: int
    ) -> tuple[Tensor, Tensor]:
        """Compute the loss and the negative log likelihood, as `sum_smoothed_loss` describes.

        Args:
            ctx: PyTorch's context for the backward pass.
            log_probs: log-probabilities, ``[N, V]``.
            target, smoothing, padding: as for `sum_smoothed_loss`.
        """
        target = target.unsqueeze(-1)
        pad = target.eq(padding)
        nll = (-log_probs.gather(-1, target)).masked_fill_(pad, 0).sum()
        uniform = (-log_probs.sum(-1, keepdim=True)).masked_fill_(pad, 0).sum()
        ctx.save_for_backward(target, pad)
        ctx.shape, ctx.weights = log_probs.shape, _weights(smoothing, log_probs.shape[-1])
        of_right, of_all = ctx.weights
        return of_right * nll + of_all * uniform, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: Tensor, of_nll: Tensor) -> tuple[Tensor | None, ...]:
        target, pad = ctx.saved_tensors
        of_right, of_all = ctx.weights
        each = _at_tokens(of_loss * -of_all, pad)
        gradient = each.expand(ctx.shape).contiguous()
        gradient.scatter_(-1, target, each + _at_tokens(of_loss * -of_right - of_nll, pad))
        return gradient, None, None, None


class _SmoothedLossOfScores(Function):
    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, target: Tensor, smoothing: float, padding: int
    ) -> tuple[Tensor, Tensor]:
        """Compute the loss, the negative log likelihood and, block by block, the gradient.

        Args:
            ctx: PyTorch's context for the backward pass.
            scores: unnormalised scores, ``[N, V]``.
            target, smoothing, padding: as for `sum_smoothed_loss`.
        """
        right = target.unsqueeze(-1)
        pad = right.eq(padding)
        of_right, of_all = _weights(smoothing, scores.shape[-1])
        nll, uniform = (scores.new_empty(right.shape) for _ in range(2))
        gradient = torch.empty_like(scores) if ctx.needs_input_grad[0] else None
        each = _at_tokens(scores.new_tensor(-of_all), pad)
        at_right = each + _at_tokens(scores.new_tensor(-of_right), pad)
        for rows in _blocks(*scores.shape):
            log_probs = scores[rows].log_softmax(-1)
            nll[rows] = -log_probs.gather(-1, right[rows])
            uniform[rows] = -log_probs.sum(-1, keepdim=True)
            if gradient is not None:
                of_log_probs = each[rows].expand(log_probs.shape).contiguous()
                of_log_probs.scatter_(-1, right[rows], at_right[rows])
                torch._log_softmax_backward_data(
                    of_log_probs, log_probs, -1, scores.dtype, out=gradient[rows]
                )
        ctx.save_for_backward(scores, target)
        ctx.gradient, ctx.options = gradient, (smoothing, padding)
        ctx.set_materialize_grads(False)
        total = nll.masked_fill_(pad, 0).sum()
        return of_right * total + of_all * uniform.masked_fill_(pad, 0).sum(), total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: Tensor | None, of_nll: Tensor | None) -> tuple[Any, ...]:
        if of_nll is None and of_loss is not None and of_loss == 1:
            return ctx.gradient, None, None, None
        scores, target = ctx.saved_tensors  # another factor would round differently
        with torch.enable_grad():
            scores = scores.detach().requires_grad_()
            sums = sum_smoothed_loss(scores.log_softmax(-1), target, *ctx.options)
        factors = [scores.new_zeros(()) if f is None else f for f in (of_loss, of_nll)]
        return *torch.autograd.grad(sums, scores, factors), None, None, None


def _blocks(rows: int, size: int) -> list[slice]:
    """Divide the rows of a score matrix into blocks that fit into the processor's cache.

    A block has at least two rows: PyTorch would add up a single one in another order.
    """
    count = max(1, rows // max(2, BLOCK_SCORES // size))
    bounds = [rows * block // count for block in range(count + 1)]
    return [slice(*pair) for pair in pairwise(bounds)]


def _weights(smoothing: float, size: int) -> tuple[float, float]:
    """Return label smoothing's additional weight of the correct subword and of every subword."""
    of_all = smoothing / (size - 1)
    return 1 - smoothing - of_all, of_all


def _at_tokens(value: Tensor, pad: Tensor) -> Tensor:
    """Return ``value`` at every target token, and 0 at padding."""
    return value.expand(pad.shape).masked_fill(pad, 0)
