"""Length-aware rotary positions (LARoPE, 2025) for heads that attend to the source.

    fairseq-train DATA --user-dir examples/length_aware --task translation_with_syntax \
        --arch syntax_transformer --larope-layers 1,2 ...

Kim, Lee, Yang and Morton, *Length-Aware Rotary Position Embedding for Text-Speech Alignment*, 2025
(arXiv 2509.11084), turn the queries and keys of cross-attention by how far their tokens are in
their sentences, not by how many tokens are before them: query m of M and key n of N are at γ m / M
and γ n / N. Scores then see how far a token is from the diagonal.

The paper synthesises speech of a given length. The length of a translation is not known while it is
being written, so both are divided by the length of the source here.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

import syncattn_fairseq.plugin  # noqa: F401
from syncattn_fairseq.base.option_fields import option
from syncattn_fairseq.functional import rotary_angles
from syncattn_fairseq.modules import BatchView, number_tokens, register_part
from syncattn_fairseq.modules.heads import Heads, Scope


@dataclass
class LengthAwareOptions:
    """Length-aware heads: the layers that have them, and γ."""

    larope_layers: str = option("", "decoder layers whose cross-attention has LARoPE (none)")
    larope_scale: float = option(10.0, "γ, the position of the source's end", above=0)


@register_part("length_aware")
class LengthAwareHeads(Heads):
    """Heads whose queries and keys are turned by positions relative to the source's length."""

    Options = LengthAwareOptions
    title = "length-aware"
    cross_layers = "larope_layers"
    arguments = ("larope_scale",)

    def __init__(self, count: int, head_dim: int, view: BatchView, scale: float) -> None:
        super().__init__(count, head_dim, view)
        self.scale = scale

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scope: Scope) -> Tensor:
        """Turn queries and keys, and attend as ordinary heads do.

        In step-by-step decoding, ``query`` has one row, that of the last target token.
        """
        per_token = self.scale / (~scope.padding_mask).sum(1, keepdim=True).clamp_min(1)
        targets = number_tokens(self.view.padding_mask)[:, -query.size(2) :]
        query = turn(query, targets * per_token)
        key = turn(key, number_tokens(scope.padding_mask) * per_token)
        return scope.attend(query, key, value, None)


def turn(states: Tensor, positions: Tensor) -> Tensor:
    """Turn queries or keys, ``(B, h, n, d)``, by positions, ``(B, n)``."""
    angles = rotary_angles(positions.flatten(), states.size(-1)).view(*positions.shape, -1)
    cos, sin = angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)
    even, odd = states.unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
    return turned.flatten(-2).to(states.dtype)
