"""What every equation needs of floating point."""

from __future__ import annotations

import torch
from torch import Tensor


def widen(x: Tensor) -> Tensor:
    """Return ``x`` in float32 if it is narrower, and as it is otherwise."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
