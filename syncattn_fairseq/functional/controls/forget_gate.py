"""Forget gates in softmax attention: every token lets what is behind it fade.

Lin et al., *Forgetting Transformer: Softmax Attention with a Forget Gate*, ICLR 2025. Beside LPSI's
gates (:mod:`.lpsi`), these have no pivot, and neighbours are not free.
"""

from torch import Tensor

from .._numerics import widen


def forget_log_gates(log_forget: Tensor) -> Tensor:
    """Sum the logarithms of the forget gates between query and key, to add to the scores.

    .. math:: F_{ij} = Σ_{l=j+1}^{i} log f_l, j ≤ i

    The paper has a decoder only. To the right of the query, for an encoder, this returns the mirror
    image: `Σ_{l=i+1}^{j} log f_l`, which is `F_{ji}`.

    Args:
        log_forget: log f, ``(..., T)``, 0 or less.

    Returns:
        F, ``(..., T, T)``, row = query, in float32 or wider.
    """
    total = widen(log_forget).cumsum(-1)
    return last_forget_log_gates(total, total.unsqueeze(-1))


def last_forget_log_gates(total: Tensor, last: Tensor) -> Tensor:
    """Compute a row of :func:`forget_log_gates` from running sums, for one step of decoding.

    Args:
        total: `Σ_{l≤j} log f_l` of every key, ``(..., T)``.
        last: the same of the row's query, ``(..., rows, 1)``.

    Returns:
        ``(..., rows, T)``.
    """
    return -(last - total.unsqueeze(-2)).abs()
