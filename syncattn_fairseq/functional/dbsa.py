"""Dependency-based self-attention: a self-attention head used as a dependency parser.

Deguchi, Tamura and Ninomiya, *Dependency-Based Self-Attention for Transformer NMT*, RANLP 2019;
notation of the same authors' *Synchronous Syntactic Attention for Transformer NMT*, ACL-IJCNLP
SRW 2021, in which `A[t, j]` is the probability that the head of token t is token j.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from ._numerics import LEAST, dot_products, multiply_by_head, widen

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def biaffine_scores(
    query: Float[Tensor, "*#batch queries width"],
    key: Float[Tensor, "*#batch keys width"],
    weight: Float[Tensor, "*#batch width width"],
    key_bias: Float[Tensor, "*#batch width"] | None = None,
) -> Float[Tensor, "*batch queries keys"]:
    """Score every key as the parent of every query (SyncAttn Eq. 4, before the softmax).

    .. math:: A = softmax(Q U Kᵀ / √d)

    Args:
        query: Q, of width d.
        key: K.
        weight: U.
        key_bias: b, which adds `b · k_j`, a prior for token j to be a head, to the scaled scores.
            It is in the code released with DBSA, but in neither paper.

    Returns:
        The scores; their softmax over the keys is A.
    """
    return dot_products(biaffine_query(query, weight, key_bias), key)


def biaffine_query(
    query: Float[Tensor, "*#batch queries width"],
    weight: Float[Tensor, "*#batch width width"],
    key_bias: Float[Tensor, "*#batch width"] | None = None,
) -> Float[Tensor, "*batch queries width"]:
    """Return queries whose scaled dot products with keys are :func:`biaffine_scores`.

    .. math:: Q' = Q U + √d b
    """
    rewritten = multiply_by_head(query, weight)
    if key_bias is not None:
        rewritten = rewritten + math.sqrt(query.size(-1)) * widen(key_bias).unsqueeze(-2)
    return rewritten


def dependency_loss(
    attention: Float[Tensor, "*batch tokens tokens"],
    parents: Int[Tensor, "*batch tokens"],
    causal: bool = False,
) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
    """Compute the cross-entropy of dependency attention with gold parents (SyncAttn Eq. 5).

    .. math:: L_dep = −Σ_t log A[t, head(t)]

    Args:
        attention: A, probabilities, row = dependent.
        parents: head(t), columns of A; -1 = none.
        causal: rows see no column to their right (a decoder): parents there cannot be predicted
            and are neither summed nor counted.

    Returns:
        The sum of `−log p`, and the number of parents in it, which both stay on the device. A
        probability below 1e-30 (in float16, 6e-5) counts as that number, so that loss and gradient
        stay finite, also if the loss is scaled for half precision.
    """
    visible = visible_gold_parents(parents, causal)
    return gold_parent_surprisals(attention, parents, visible).sum(), visible.sum()


def gold_parent_surprisals(
    attention: Float[Tensor, "*batch tokens tokens"],
    gold_parents: Int[Tensor, "*batch tokens"],
    visible: Bool[Tensor, "*#batch tokens"],
) -> Float[Tensor, "*batch tokens"]:
    """Return the negative log-probability of each token's gold parent, in nats.

    They are `−log A[t, head(t)]`, and 0 where the parent is not visible.
    """
    columns = gold_parents.clamp_min(0)
    probability = attention.gather(-1, columns.unsqueeze(-1)).squeeze(-1)
    least = max(torch.finfo(attention.dtype).tiny, LEAST)
    log_probability = widen(F.threshold(probability, least, least)).log()
    return log_probability * visible.to(log_probability.dtype).neg()


def visible_gold_parents(
    gold_parents: Int[Tensor, "*batch tokens"], causal: bool
) -> Bool[Tensor, "*batch tokens"]:
    """Return a mask of tokens with a gold parent; if causal, parents to the right do not count.

    Parents are columns, -1 = none.
    """
    visible = gold_parents >= 0
    if causal:
        columns = torch.arange(gold_parents.size(-1), device=gold_parents.device)
        visible &= gold_parents <= columns
    return visible
