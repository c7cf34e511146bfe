"""Syntax-directed attention: attention to source words near one word in the dependency tree.

Chen, Wang, Utiyama, Sumita and Zhao, *Syntax-Directed Attention for Neural Machine Translation*,
AAAI 2018, and the attentions that it is compared with. `s'_i` is the decoder's state, `h_j` the
annotation of source word j, and `p_i` the source position that the state is about to translate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ._numerics import multiply, widen

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Num


def additive_scores(
    query: Float[Tensor, "*#batch target width"],
    key: Float[Tensor, "*#batch source width"],
    weight: Float[Tensor, "width"],
) -> Float[Tensor, "*batch target source"]:
    """Compute additive attention scores of every source word (SDAtt Eq. 2).

    .. math:: e_{ij} = v · tanh(U s'_i + W h_j)

    Args:
        query: `U s'_i`.
        key: `W h_j`.
        weight: v.

    Returns:
        e, in float32 or wider.
    """
    return _AdditiveScores.apply(query, key, weight)


class _AdditiveScores(torch.autograd.Function):
    """:func:`additive_scores`, which keeps tangents (tanh) in the inputs' type for its gradient.

    They are the largest tensor by far. PyTorch would keep them in float32.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
        """Compute the scores, and keep the hyperbolic tangents in the type of the keys.

        Args:
            ctx: PyTorch's context for the backward pass.
            query, key, weight: as for :func:`additive_scores`.
        """
        tangents = torch.tanh(widen(query).unsqueeze(-2) + key.unsqueeze(-3))
        ctx.save_for_backward(tangents.to(key.dtype), weight)
        ctx.types = query.dtype, key.dtype
        return multiply(tangents, weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tangents, weight = ctx.saved_tensors
        of_query, of_key = ctx.types
        of_tangents = gradient.unsqueeze(-1) * widen(weight)
        of_sums = torch.ops.aten.tanh_backward(of_tangents, widen(tangents))
        of_weight = multiply(widen(tangents).flatten(0, -2).transpose(0, 1), gradient.flatten())
        return (
            of_sums.sum(-2).to(of_query),
            _sum_over(of_sums, -3).to(of_key),
            of_weight.to(weight.dtype),
        )


def _sum_over(x: Tensor, dim: int) -> Tensor:
    """Sum over a dimension.

    A dimension of size 1 needs no kernel.
    """
    return x.squeeze(dim) if x.size(dim) == 1 else x.sum(dim)


def predicted_position(
    activation: Float[Tensor, "*#batch target"], last: Num[Tensor, "*#batch 1"]
) -> Float[Tensor, "*batch target"]:
    """Compute the source position to be translated next, from a decoder state (SDAtt Eq. 5).

    .. math:: p_i = (J − 1) · sigmoid(v_p · tanh(W_p s'_i))

    The paper has J in place of J - 1. Here columns count from 0, so the last word is at J - 1:
    the paper's p would have to be clamped to it, and a clamped p has no gradient.

    Args:
        activation: the argument of the sigmoid.
        last: J - 1, the position of the source's last token.

    Returns:
        p, between 0 and J - 1, in float32 or wider.
    """
    return widen(activation).sigmoid() * last


def local_attention(
    scores: Float[Tensor, "*#batch source"],
    position: Float[Tensor, "*#batch"],
    half_window: int = 10,
    renormalise: bool = False,
) -> Float[Tensor, "*batch source"]:
    """Multiply global attention by a density around a source position (SDAtt Eq. 6).

    .. math::
        a^l_{ij} = softmax_j(e_{ij}) exp(−(j − p_i)² / (2 σ²))
        σ = D / 2

    for `|j − p_i| ≤ D`, and 0 elsewhere. The paper does not normalise it again: a state
    that attends to words far from p sees almost nothing of the source.

    Args:
        scores: e; minus infinity for padding.
        position: p, in columns of e.
        half_window: D, in columns.
        renormalise: divide by the sum.

    Returns:
        `a^l`; a row sums to at most one, and to exactly one if ``renormalise``.
    """
    scores = widen(scores)
    offset = _offsets(position, scores)
    outside = offset.abs() > half_window
    exponent = _fade(offset, half_window / 2)
    if renormalise:
        return (scores + exponent).masked_fill(outside, -torch.inf).softmax(dim=-1)
    return scores.softmax(dim=-1) * exponent.exp().masked_fill(outside, 0.0)


def flexible_attention(
    scores: Float[Tensor, "*#batch source"],
    position: Float[Tensor, "*#batch"],
    sharpness: Float[Tensor, "*#batch"],
    half_window: int = 10,
) -> Float[Tensor, "*batch source"]:
    """Compute attention in a window of learnt width around a position (Shu and Nakayama, 2017).

    .. math::
        a^f_{ij} = softmax_j(e_{ij} − g_i (j − p_i)² / (2 σ²))
        σ = D / 2

    Args:
        scores: e; minus infinity for padding.
        position: p, in columns of e.
        sharpness: g, between 0, an infinite window, and 1.
        half_window: D, in columns.

    Returns:
        `a^f`, probabilities.
    """
    scores = widen(scores)
    exponent = _fade(_offsets(position, scores), half_window / 2)
    return torch.addcmul(scores, sharpness.unsqueeze(-1), exponent).softmax(dim=-1)


def tree_distances(parents: Int[Tensor, "*batch tokens"]) -> Int[Tensor, "*batch tokens tokens"]:
    """Count the edges between any two words of a dependency tree (SDAtt Eq. 9).

    The path from i to j leads through the lowest word above both:
    `M_{ij} = depth_i + depth_j − 2 |above_i ∩ above_j|`, where every word is above itself and the
    depth of a word is the number of words above it. Words of different trees are as far apart as if
    one more word above both roots joined the trees.

    Args:
        parents: columns, counted from 0; a root is its own parent.

    Returns:
        M, int64.

    Raises:
        ValueError: the parents form a cycle, see :func:`find_ancestors`.
    """
    above = find_ancestors(parents)
    depth = above.sum(-1)
    common = above @ above.transpose(-1, -2)
    return (depth.unsqueeze(-1) + depth.unsqueeze(-2) - 2 * common).long()


def distances_from(
    position: Float[Tensor, "*batch target"], distances: Num[Tensor, "*batch source source"]
) -> Float[Tensor, "*batch target source"]:
    """Return all words' tree distances from SDAtt's predicted source position, ``M[p_i]``.

    The position is rounded. Its gradient ignores the rounding: it is the slope of the line between
    the rows of the two words next to it.

    Args:
        position: p, in columns; clamped to the ends.
        distances: M, in edges.

    Returns:
        `M[p_i]`, in edges.
    """
    inside = F.hardtanh(position, 0, distances.size(-1) - 1)
    return distances_between(inside, rows_beside_the_next(distances))


def rows_beside_the_next(
    distances: Num[Tensor, "*batch source source"],
) -> Float[Tensor, "*batch source 2*source"]:
    """Join each row of tree distances with the next row, for :func:`distances_between`."""
    below = torch.cat([distances[..., 1:, :], distances[..., -1:, :]], dim=-2)
    return torch.cat([distances, below], dim=-1).to(torch.get_default_dtype())


def distances_between(
    position: Float[Tensor, "*batch target"], rows: Float[Tensor, "*batch source twice"]
) -> Float[Tensor, "*batch target source"]:
    """Compute :func:`distances_from` for positions between the first and the last column.

    The rows are those of :func:`rows_beside_the_next`.
    """
    fixed = position.detach()
    before = fixed.floor()
    index = before.long().unsqueeze(-1)
    neighbours = rows.gather(-2, index.expand(*position.shape, rows.size(-1)))
    here, there = neighbours.to(position.dtype).chunk(2, dim=-1)
    passing = position - fixed  # 0, with a gradient
    step = (fixed - before).round() + passing
    return here.lerp(there, step.unsqueeze(-1))


def expected_distances(
    scores: Float[Tensor, "*#batch target source"], distances: Num[Tensor, "*#batch source source"]
) -> Float[Tensor, "*batch target source"]:
    """Return each word's mean tree distance from the words attended to by a target position.

    .. math:: M̄_{ij} = Σ_k softmax_k(e_{ik}) M_{kj}

    It replaces `M[p_i]` if no position is predicted. It is not in the paper.

    Args:
        scores: e; minus infinity for padding.
        distances: M, in edges.

    Returns:
        M̄, in edges.
    """
    attention = widen(scores).softmax(dim=-1)
    return multiply(attention, distances.to(attention.dtype))


def syntax_directed_attention(
    scores: Float[Tensor, "*#batch source"], distances: Num[Tensor, "*#batch source"], n: int = 4
) -> Float[Tensor, "*batch source"]:
    """Compute attention to source words within n edges of a word in the tree (SDAtt Eq. 10-11).

    .. math::
        e^s_{ij} = e_{ij} exp(−M[p_i][j]² / (2 σ²))
        a^s_{ij} = softmax_{j : M[p_i][j] ≤ n}(e^s_{ij})
        σ = n / 2

    and 0 elsewhere. This follows the text's explanation of Eq. 11, where the window is
    `[p_i − n, p_i + n]`. The nearest word is always in the window: expected distances may all be
    greater than n, while around a predicted position one word is at distance 0.

    Args:
        scores: e; minus infinity for padding.
        distances: `M[p_i]`, see :func:`distances_from` and :func:`expected_distances`.
        n: half the window, in edges.

    Returns:
        `a^s`, probabilities.
    """
    return syntax_directed_scores(scores, distances, n).softmax(dim=-1)


def syntax_directed_scores(
    scores: Float[Tensor, "*#batch source"], distances: Num[Tensor, "*#batch source"], n: int = 4
) -> Float[Tensor, "*batch source"]:
    """Return the scores `e^s` of :func:`syntax_directed_attention`, before its softmax.

    They are minus infinity outside the window.
    """
    scores = widen(scores)
    distances = distances.to(scores.dtype)
    weights = _fade(distances, n / 2).exp()
    among_words = distances.detach().masked_fill(scores == -torch.inf, torch.inf)
    outside = among_words > among_words.amin(dim=-1, keepdim=True).clamp_min(n)
    # With infinite scores the weights' gradient would be 0 times infinity.
    return (scores.masked_fill(outside, 0.0) * weights).masked_fill(outside, -torch.inf)


def _fade(distance: Float[Tensor, "*shape"], std: float) -> Float[Tensor, "*shape"]:
    """Return the exponent of an unscaled normal density, `−distance² / (2 σ²)`."""
    return distance.square() * (-1 / (2 * std**2))


def _offsets(
    position: Float[Tensor, "*batch"], scores: Float[Tensor, "*#batch source"]
) -> Float[Tensor, "*batch source"]:
    """Return the signed distance of each column from a position, `j − p_i`."""
    columns = torch.arange(scores.size(-1), dtype=scores.dtype, device=scores.device)
    return columns - position.unsqueeze(-1)


def find_ancestors(parents: Int[Tensor, "*batch tokens"]) -> Float[Tensor, "*batch tokens tokens"]:
    """Return a mask of each word's ancestors in the tree, the word itself included.

    Args:
        parents: columns, counted from 0; a root is its own parent.

    Returns:
        0.0 and 1.0, row = word, column = the word above it.

    Raises:
        ValueError: the parents form a cycle. Only tensors on the CPU, where data is prepared, are
            checked: elsewhere the program would have to wait for the device.
    """
    length = parents.size(-1)
    above = torch.eye(length, device=parents.device).expand(*parents.shape, length)
    ancestor = parents
    for _ in range((length - 1).bit_length()):  # each round looks twice as far up
        reached = above.gather(-2, ancestor.unsqueeze(-1).expand_as(above))
        above = torch.maximum(above, reached)
        ancestor = ancestor.gather(-1, ancestor)
    if parents.device.type == "cpu" and not torch.equal(parents.gather(-1, ancestor), ancestor):
        raise ValueError("the parents form a cycle: some words hang from no root")
    return above
