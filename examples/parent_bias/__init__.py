"""PASCAL with an added density, for a finding of study/findings.md.

    bash scripts/recipe.sh multi30k_tiny_en_de_3625 \
        "pascal:common.user_dir=examples/parent_bias:model.pascal_layers='':model.parent_bias_layers=1"

PASCAL multiplies scores by a density. Far from the parent, scores become 0, so these tokens still
get attention: as much as tokens near the parent whose scores are 0. Here the logarithm of the
density is added, so that attention itself is multiplied by the density, and normalised again.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import syncattn_fairseq.plugin  # noqa: F401
from syncattn_fairseq.modules import register_part
from syncattn_fairseq.modules.heads import Heads, ParentScaledHeads, Scope


@dataclass
class ParentBiasOptions:
    """The layers; other options are PASCAL's."""

    parent_bias_layers: str = field(
        default="", metadata={"help": "encoder layers with parent-biased heads (none)"}
    )


@register_part("parent_biased")
class ParentBiasedHeads(ParentScaledHeads):
    """Heads whose attention is multiplied by a density around the token's parent."""

    Options = ParentBiasOptions
    title = "parent-biased"
    encoder_layers = "parent_bias_layers"

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scope: Scope) -> Tensor:
        """Attend as plain heads do, with the logarithm of the density added to the scores."""
        return Heads.attend(self, query, key, value, scope)

    def bias(self, query: Tensor, key: Tensor, scope: Scope) -> Any:
        """Return the logarithm of the density around each token's parent, ``(B, 1, T, T)``."""
        return self.share("bias", self.measure_bias).to(query.dtype)

    def measure_bias(self) -> Tensor:
        """Compute the logarithm of the density around each token's parent for the batch."""
        weights = self.weigh_parents().unsqueeze(1)
        return weights.clamp_min(torch.finfo(weights.dtype).tiny).log()
