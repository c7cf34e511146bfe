"""How controls were drawn for the study: never change this, all its controls would be others."""

import zlib
from bisect import bisect_left
from typing import Any

import numpy as np
import torch
from torch import Tensor


def draw(control: str, index: int, tokens: Tensor, heads: Any) -> Tensor:
    """Draw the control of one of the sentences whose marks are ``heads``."""
    generator = np.random.default_rng(zlib.crc32(tokens.numpy().tobytes()))
    marks = heads[index]
    if control == "shuffled":
        return _change(marks, lambda own: own[generator.permutation(len(own))])
    if control == "random":
        return _change(marks, lambda own: torch.from_numpy(_draw_tree(len(own), generator)))
    if control == "mirrored":
        return _change(marks, _mirror)
    words = _count(marks)
    alike = [i for i in range(len(heads)) if words and _count(heads[i]) == words]
    position = bisect_left(alike, index)
    own = int(index in alike[position : position + 1])
    if len(alike) == own:
        return _change(marks, _mirror)
    drawn = int(generator.integers(len(alike) - own))
    other = heads[alike[drawn + own * (drawn >= position)]]
    return _change(marks, lambda _: other[other != -1])


def _draw_tree(size: int, generator: np.random.Generator) -> np.ndarray:
    order = generator.permutation(size) + 1
    governors = order[(generator.random(size) * np.arange(size)).astype(int)]
    drawn = np.zeros(size, dtype=int)
    drawn[order[1:] - 1] = governors[1:]
    return drawn


def _mirror(heads: Tensor) -> Tensor:
    return torch.where(heads > 0, len(heads) + 1 - heads, heads).flip(0)


def _count(marks: Tensor) -> int:
    starts = marks[marks != -1]
    return 0 if bool((starts < 0).any()) else len(starts)


def _change(marks: Tensor, change: Any) -> Tensor:
    if not _count(marks):
        return marks
    starts = marks != -1
    changed = marks.clone()
    changed[starts] = change(marks[starts]).to(marks.dtype)
    return changed
