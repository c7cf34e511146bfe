"""PASCAL with the bug of its released code, for a finding of study/findings.md.

    bash scripts/recipe.sh builtin_en_de \
        "pascal:common.user_dir=examples/released_pascal:model.pascal_layers='':model.released_layers=1"

The release stores the scores of B sentences and H heads in a matrix of B H rows, sentence by
sentence, but scales its last N B rows as if they were stored head by head. So it scales all heads
of a batch's last sentences and none of the first ones, and uses the parents of other sentences.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import syncattn_fairseq.plugin  # noqa: F401
from syncattn_fairseq.functional import parent_scaled_scores
from syncattn_fairseq.modules import register_part
from syncattn_fairseq.modules.heads import ParentScaledHeads, Scope, Slot


@dataclass
class ReleasedOptions:
    """The layers; ``--pascal-heads`` is how many of a layer's heads were meant to be scaled."""

    released_layers: str = field(
        default="", metadata={"help": "encoder layers that are scaled as in the release (none)"}
    )


@register_part("released_parent_scaled")
class ReleasedParentScaledHeads(ParentScaledHeads):
    """All heads of a layer, N of which were meant to be scaled by their token's parent."""

    Options = ReleasedOptions
    title = "wrongly parent-scaled"
    option = encoder_layers = "released_layers"
    #: N, the number of heads that were meant to be scaled.
    meant: int

    @classmethod
    def count_heads(cls, cfg: Any, side: str, free: int) -> int:
        """Return the number of the layer's free heads, since all of them are taken."""
        return free

    @classmethod
    def build(cls, cfg: Any, slot: Slot) -> "ReleasedParentScaledHeads":
        """Build the heads of one layer."""
        options = (cfg.pascal_parents, cfg.pascal_std, cfg.parent_ignoring)
        heads = cls(slot.count, slot.head_dim, slot.view, *options)
        heads.meant = cfg.pascal_heads or max(1, slot.count - 1)
        return heads

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scope: Scope) -> Tensor:
        """Attend with scores of which the wrong ones are scaled, as in the released code."""
        wide = torch.promote_types(query.dtype, torch.float32)
        query, key = scope.order.turn(query, key)
        weights = self.mix_up(self.weigh_parents(wide))
        return scope.average(scope.softmax(parent_scaled_scores(query, key, weights)), value)

    def mix_up(self, weights: Tensor) -> Tensor:
        """Turn the densities, ``(B, T, T)``, into factors of scores, ``(B, H, T, T)``."""
        batch = len(weights)
        row = torch.arange(batch * self.count, device=weights.device).view(batch, self.count)
        wrong = row - batch * (self.count - self.meant)
        mixed = weights[wrong.clamp_min(0) // self.meant]
        return mixed.masked_fill((wrong < 0)[:, :, None, None], 1.0)
