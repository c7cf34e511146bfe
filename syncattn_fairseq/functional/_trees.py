"""Dependency-tree helpers for the equations."""

import torch
from torch import Tensor


def find_ancestors(parents: Tensor) -> Tensor:
    """Find which words are above which; every word is above itself.

    Args:
        parents: ``(..., T)`` integer columns; a root is its own parent.

    Returns:
        ``(..., T, T)`` of 0.0 and 1.0, row = word, column = the word above it.

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
