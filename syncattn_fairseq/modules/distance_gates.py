"""Syntactic distances of the words, and the gates that they set (LPSI)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..functional import syntactic_distances
from ..functional.lpsi import last_syntactic_distance, log_gates, log_gates_of_last


class DistanceGates(nn.Module):
    """The convolution over keys that measures distances (LPSI Eq. 4), one for each head.

    Args:
        heads: h.
        head_dim: d.
        look_back: M, so that M + 1 keys are seen.
        temperature: τ of the gates (Eq. 5).
    """

    def __init__(
        self, heads: int, head_dim: int, look_back: int = 5, temperature: float = 1.0
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, look_back + 1, head_dim))
        self.bias = nn.Parameter(torch.empty(heads))
        self.temperature = temperature
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise as PyTorch does a linear layer of the same size, with a bias of 0."""
        bound = float(self.weight[0].numel() ** -0.5)
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.zeros_(self.bias)

    def forward(self, keys: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Measure the distances.

        Args:
            keys: ``(B, h, T, d)``.
            padding_mask: ``(B, T)``, True = padding, whose keys count as zeros.

        Returns:
            ``(B, h, T)`` in float32 (or wider).
        """
        if padding_mask is not None:
            keys = keys.masked_fill(padding_mask[:, None, :, None], 0.0)
        return syntactic_distances(keys, self.weight, self.bias)

    def continued(self, distances: Tensor | None, keys: Tensor) -> Tensor:
        """Measure the last distance only, in incremental decoding.

        Args:
            distances: of all words before, ``(B, h, T - 1)``, or None.
            keys: of all words, ``(B, h, T, d)``.

        Returns:
            ``(B, h, T)``.
        """
        last = last_syntactic_distance(keys, self.weight, self.bias).unsqueeze(-1)
        return last if distances is None else torch.cat([distances, last], dim=-1)

    def log_gates(self, distances: Tensor, rows: int, causal: bool) -> Tensor:
        """Return what is added to the scores of the last ``rows`` queries, ``(B, h, rows, T)``.

        Args:
            distances: ``(B, h, T)``.
            rows: T, or 1 in incremental decoding.
            causal: queries see nothing to their right.
        """
        if rows < distances.size(-1):
            return log_gates_of_last(distances, self.temperature).unsqueeze(-2)
        return log_gates(distances, self.temperature, causal)
