"""Compute the attention weights of each self-attention head of a layer, of any kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from syncattn_fairseq.modules.heads import Heads
from syncattn_fairseq.modules.heads.heads import Scope, split_heads
from syncattn_fairseq.modules.positions.positions import Order
from syncattn_fairseq.modules.syntax_attention import HeadGroups


def list_groups(attention: Any, view: Any) -> list[tuple[str, Any, slice]]:
    """List the kinds of heads of a layer: name, module and the heads' numbers."""
    if isinstance(attention, HeadGroups):
        names = attention.kinds
        return [(n, *found) for n, found in zip(names, attention.groups, strict=True)]
    heads = Heads(attention.num_heads, attention.head_dim, view)
    return [("ordinary", heads, slice(0, attention.num_heads))]


def attend(
    layer: Any, x: Tensor, padding: Tensor, view: Any, causal: bool = False
) -> Iterator[tuple[str, Tensor]]:
    """Compute the attention weights of each kind of heads from the layer's input.

    Args:
        layer: an encoder or decoder layer.
        x: the input of the layer, ``(T, B, D)``.
        padding: the positions that are padding, ``(B, T)``.
        view: the batch (``BatchView``), which ordinary heads are made with.
        causal: whether a position attends to earlier positions and itself alone, as in a decoder.

    Yields:
        The name of the kind, and its attention weights ``(B, h, T, T)``.
    """
    attention = layer.self_attn
    if layer.normalize_before:
        x = layer.self_attn_layer_norm(x)
    query, key = (
        split_heads(project(x), attention.head_dim)
        for project in (attention.q_proj, attention.k_proj)
    )
    batch, _, length, _ = query.shape
    mask = torch.zeros(batch, 1, 1, length).masked_fill(padding[:, None, None, :], -torch.inf)
    if causal:
        mask = mask + torch.full((length, length), -torch.inf).triu(1)
    composed = isinstance(attention, HeadGroups)
    orders = attention._order(length, length, x.device) if composed else lambda _: Order()
    for name, heads, numbers in list_groups(attention, view):
        # The average of the unit vectors, weighted by attention, is the attention.
        values = torch.eye(length).expand(batch, heads.count, length, length)
        scope = Scope(mask, padding, causal, attention.dropout_module, order=orders(numbers), x=x)
        yield name, heads.attend(query[:, numbers], key[:, numbers], values, scope)
