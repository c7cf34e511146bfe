"""The tree-planted loss: attention taught to fade with the distance between words.

Yoshida, Someya and Oseki, *Tree-Planted Transformers: Unidirectional Transformer Language Models
with Implicit Syntactic Supervision*, Findings of ACL 2024. Where DBSA's loss (:mod:`.dbsa`) puts
all of a word's attention on its parent, this one spreads it over all words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .._numerics import LEAST, multiply

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def attention_between_words(
    attention: Float[Tensor, "*#batch tokens tokens"],
    distances: Int[Tensor, "*#batch tokens tokens"],
) -> Float[Tensor, "*batch tokens tokens"]:
    """Convert attention between subwords to attention between words.

    A word gets what all its subwords get, and gives the mean of what its subwords give.

    Args:
        attention: A, probabilities between subwords, row = query.
        distances: 0 for subwords of the same word and -1 for what is no word.

    Returns:
        At (t, j), the attention from the word of t to the word of j, in float32 or wider. What goes
        to no word, such as the end of the sentence, is lost.
    """
    same = (distances == 0).to(torch.promote_types(attention.dtype, torch.float32))
    received = multiply(attention, same)  # the matrix is symmetric
    return multiply(same, received) / same.sum(-1, keepdim=True).clamp_min(1)


def planted_target(
    distances: Int[Tensor, "*batch tokens tokens"], causal: bool = False
) -> Float[Tensor, "*batch tokens tokens"]:
    """Return each word's target attention, which fades with the distance to other words.

    .. math:: S_{wv} = e^{−distance_{wv}} / Σ_{v'} e^{−distance_{wv'}}

    over the words v' in view: all words, the word itself included; in a decoder, the word itself
    and those before it.

    Args:
        distances, causal: as for :func:`planted_losses`.

    Returns:
        At (t, j), what the word of t should give to the word of j, divided by the number of
        subwords of that word, in float32. So the rows of words sum to 1, and those of other tokens
        are 0.
    """
    scores = -distances.float() - _sizes(distances).log().unsqueeze(-2)
    visible = _in_view(distances, causal)
    scores = scores.masked_fill(~visible, torch.finfo(scores.dtype).min)
    return scores.softmax(-1).masked_fill(~visible, 0.0)


def planted_losses(
    attention: Float[Tensor, "*#batch tokens tokens"],
    distances: Int[Tensor, "*#batch tokens tokens"],
    causal: bool = False,
) -> Float[Tensor, "*batch tokens"]:
    """Return each word's tree-planting loss: the KL divergence of target and actual attention.

    .. math:: L_w = Σ_v S_{wv} log(S_{wv} / A_{wv})

    A is not normalised over the words: what goes to the end of the sentence is lost, as in DBSA's
    loss. That loss is the limit in which all of S is on the parent.

    Args:
        attention: A, probabilities between subwords, row = query.
        distances: the distance between the words of two subwords: 0 only if they are of the same
            word, and -1 if one of them is no word (padding, the end of the sentence).
        causal: words to the right of the query are out of view (a decoder).

    Returns:
        The loss of each subword's word, divided by the word's number of subwords, so that the sum
        over subwords is the sum over words; 0 for what is no word. It is in float32 or wider.
        Attention below 1e-30 counts as that number, so that loss and gradient stay finite.
    """
    target, sizes = planted_target(distances, causal), _sizes(distances)
    between = attention_between_words(attention, distances).clamp_min(LEAST)
    # The target of a word is spread over its subwords, so that they must be put together again.
    whole = (target * sizes.unsqueeze(-2)).masked_fill(target == 0, 1.0)
    divergence = (target * (whole.log() - between.log())).sum(-1)
    return divergence / sizes


def count_words(distances: Int[Tensor, "*batch tokens tokens"]) -> Float[Tensor, "*batch"]:
    """Return the number of words of each sentence, given the distances between its tokens."""
    sizes = _sizes(distances)
    return sizes.reciprocal().masked_fill(_outside(distances), 0.0).sum(-1)


def _sizes(distances: Int[Tensor, "*batch tokens tokens"]) -> Float[Tensor, "*batch tokens"]:
    """Return the number of subwords of each token's word, or 1 for tokens other than words."""
    return (distances == 0).sum(-1).clamp_min(1).float()


def _outside(distances: Int[Tensor, "*batch tokens tokens"]) -> Bool[Tensor, "*batch tokens"]:
    """Return a mask of tokens other than words, such as padding and the end of sentence."""
    return distances.diagonal(dim1=-2, dim2=-1) < 0


def _in_view(
    distances: Int[Tensor, "*batch tokens tokens"], causal: bool
) -> Bool[Tensor, "*batch tokens tokens"]:
    """Return a mask of the tokens whose words each query may see."""
    visible = distances >= 0
    if causal:
        past = torch.ones(distances.shape[-2:], dtype=torch.bool, device=distances.device).tril()
        visible = visible & (past | (distances == 0))
    return visible
