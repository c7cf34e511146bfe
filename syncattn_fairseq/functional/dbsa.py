"""Dependency-based self-attention: a self-attention head that is a dependency parser.

Deguchi, Tamura and Ninomiya, *Dependency-Based Self-Attention for Transformer NMT*, RANLP 2019;
notation of the same authors' *Synchronous Syntactic Attention for Transformer NMT*, ACL-IJCNLP
SRW 2021, in which `A[t, j]` is the probability that the head of token t is token j.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from ._numerics import LEAST, dot_products, multiply_by_head, widen


def biaffine_scores(
    query: Tensor, key: Tensor, weight: Tensor, key_bias: Tensor | None = None
) -> Tensor:
    """Score every key as the head of every query (SyncAttn Eq. 4, before the softmax).

    .. math:: A = softmax(Q U Kᵀ / √d)

    Args:
        query: Q, ``(..., T, d)``.
        key: K, ``(..., S, d)``.
        weight: U, ``(..., d, d)``.
        key_bias: b, ``(..., d)``. Adds `b · k_j`, a prior for token j to be a head, to
            the scaled scores. It is in the code released with DBSA, but in neither paper.

    Returns:
        ``(..., T, S)`` scores; their softmax over the last dimension is A.
    """
    return dot_products(biaffine_query(query, weight, key_bias), key)


def biaffine_query(query: Tensor, weight: Tensor, key_bias: Tensor | None = None) -> Tensor:
    """Return the query with which an ordinary head has :func:`biaffine_scores`.

    .. math:: Q' = Q U + √d b

    Args:
        query, weight, key_bias: as there.

    Returns:
        Q', ``(..., T, d)``.
    """
    rewritten = multiply_by_head(query, weight)
    if key_bias is not None:
        rewritten = rewritten + math.sqrt(query.size(-1)) * widen(key_bias).unsqueeze(-2)
    return rewritten


def dependency_loss(
    attention: Tensor, parents: Tensor, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of the attention with the gold dependency heads (SyncAttn Eq. 5).

    .. math:: L_dep = −Σ_t log A[t, head(t)]

    Args:
        attention: A, ``(..., T, T)`` probabilities, row = dependent.
        parents: head(t), ``(..., T)`` integer columns of A; -1 = none.
        causal: rows see no column to their right (a decoder): labels there cannot be predicted
            and are neither summed nor counted.

    Returns:
        The sum of `−log p`, and the number of labels in it: two scalars that stay on the
        device. A probability below 1e-30 (in float16, 6e-5) counts as that number, so that
        loss and gradient stay finite, also if the loss is scaled for half precision.
    """
    in_view = labels_in_view(parents, causal)
    return label_surprisals(attention, parents, in_view).sum(), in_view.sum()


def label_surprisals(attention: Tensor, parents: Tensor, in_view: Tensor) -> Tensor:
    """Return the terms of the sum in :func:`dependency_loss`.

    Args:
        attention, parents: as there.
        in_view: which labels count, ``(..., T)``, see :func:`labels_in_view`.

    Returns:
        ``(..., T)``: `−log A[t, head(t)]`, 0 if the label does not count.
    """
    columns = parents.clamp_min(0)
    probability = attention.gather(-1, columns.unsqueeze(-1)).squeeze(-1)
    least = max(torch.finfo(attention.dtype).tiny, LEAST)
    log_probability = widen(F.threshold(probability, least, least)).log()
    return log_probability * in_view.to(log_probability.dtype).neg()


def labels_in_view(parents: Tensor, causal: bool) -> Tensor:
    """Find which labels a row can predict.

    Args:
        parents: ``(..., T)`` integer columns, -1 = none.
        causal: a label to the right of its row is out of view.

    Returns:
        ``(..., T)`` boolean, True = there is a label and the row can attend to it.
    """
    in_view = parents >= 0
    if causal:
        in_view &= parents <= torch.arange(parents.size(-1), device=parents.device)
    return in_view
