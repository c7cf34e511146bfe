"""Forget gates in softmax attention: every token weakens the attention past itself.

Lin et al., *Forgetting Transformer: Softmax Attention with a Forget Gate*, ICLR 2025. Beside LPSI's
gates (:mod:`.lpsi`), these have no pivot, and neighbours are not free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from .._numerics import widen

if TYPE_CHECKING:
    from jaxtyping import Float


def forget_log_gates(
    log_forget: Float[Tensor, "*batch tokens"],
) -> Float[Tensor, "*batch tokens tokens"]:
    """Sum the logarithms of forget gates between query and key, an addend to attention scores.

    .. math:: F_{ij} = Σ_{l=j+1}^{i} log f_l, j ≤ i

    The paper has a decoder only. To the right of the query, for an encoder, this returns the mirror
    image: `Σ_{l=i+1}^{j} log f_l`, which is `F_{ji}`.

    Args:
        log_forget: log f, 0 or less.

    Returns:
        F, row = query, in float32 or wider.
    """
    total = widen(log_forget).cumsum(-1)
    return last_forget_log_gates(total, total.unsqueeze(-1))


def last_forget_log_gates(
    total: Float[Tensor, "*batch tokens"], last: Float[Tensor, "*batch rows 1"]
) -> Float[Tensor, "*batch rows tokens"]:
    """Compute the last rows of :func:`forget_log_gates` from running sums, for one decoding step.

    Args:
        total: `Σ_{l≤j} log f_l` of every key.
        last: the same of each row's query.
    """
    return -(last - total.unsqueeze(-2)).abs()
