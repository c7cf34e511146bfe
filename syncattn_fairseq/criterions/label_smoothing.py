"""Label-smoothed cross-entropy with few passes over the scores of the whole vocabulary.

With a vocabulary of V subwords, N predicted tokens have N x V scores, the largest tensor of an
update, and each pass over them costs. fairseq makes two gradients of that size and adds them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

#: Scores that are in a processor's cache together.
BLOCK = 2**19


def sum_smoothed_loss(
    log_probs: Tensor, target: Tensor, smoothing: float, padding: int
) -> tuple[Tensor, Tensor]:
    """Sum the label-smoothed cross-entropy: fairseq's values and gradients, bit for bit.

    Args:
        log_probs: [N, V], of each subword.
        target: [N], indices of the right ones.
        smoothing: probability given to the others in equal parts.
        padding: index of targets that do not count.

    Returns:
        The loss and the negative log likelihood in nats, each a scalar.
    """
    return _SmoothedLoss.apply(log_probs, target, smoothing, padding)


def sum_smoothed_loss_of_scores(
    scores: Tensor, target: Tensor, smoothing: float, padding: int
) -> tuple[Tensor, Tensor]:
    """Compute `sum_smoothed_loss` from scores [N, V] before the softmax, equal but for rounding.

    The gradient is computed at once, block by block, while the scores are in the processor's cache.
    The NLL has no gradient here.
    """
    return _SmoothedLossOfScores.apply(scores, target, smoothing, padding)


class _SmoothedLoss(Function):
    @staticmethod
    def forward(
        ctx: Any, log_probs: Tensor, target: Tensor, smoothing: float, padding: int
    ) -> tuple[Tensor, Tensor]:
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
        size = scores.shape[-1]
        of_right, of_all = _weights(smoothing, size)
        gradient = torch.empty_like(scores) if ctx.needs_input_grad[0] else None
        loss = nll = scores.new_zeros(())
        step = max(1, BLOCK // size)
        for begin in range(0, len(scores), step):
            rows = slice(begin, begin + step)
            x, right = scores[rows], target[rows].unsqueeze(-1)
            counts = right.ne(padding).to(x)
            probs = x.softmax(-1)
            # The largest probability is 1 / sum(exp(score - largest score)).
            norm = x.amax(-1, keepdim=True) - probs.amax(-1, keepdim=True).log()
            each_nll = (norm - x.gather(-1, right)) * counts
            mean = (norm - x.mean(-1, keepdim=True)) * counts
            nll = nll + each_nll.sum()
            loss = loss + of_right * each_nll.sum() + of_all * size * mean.sum()
            if gradient is not None:
                probs.mul_(counts * (of_right + of_all * size)).sub_(counts * of_all)
                probs.scatter_add_(-1, right, counts * -of_right)
                gradient[rows] = probs
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        [gradient] = ctx.saved_tensors
        return gradient if of_loss == 1 else gradient * of_loss, None, None, None


def _weights(smoothing: float, size: int) -> tuple[float, float]:
    """Return the weights of the right subword, beyond that of all, and of all."""
    of_all = smoothing / (size - 1)
    return 1 - smoothing - of_all, of_all


def _at_tokens(value: Tensor, pad: Tensor) -> Tensor:
    """Return the value for each token, and 0 for padding."""
    return value.expand(pad.shape).masked_fill(pad, 0)
