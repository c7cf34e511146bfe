"""SyncAttn with a projection that is not flattened, for a finding of study/findings.md.

    bash scripts/recipe.sh multi30k_tiny_en_de_3625 \
        "syncattn:common.user_dir=examples/sharp_sync:criterion.sync_weight=0:criterion.sharp_sync_weight=0.5"

SyncAttn compares the decoder's dependency head with a softmax of the encoder's, projected onto the
target (Eq. 8). That is a softmax of values between 0 and 1, which is nearly flat. Here, each row
of the projection is divided by its sum instead.
"""

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

import syncattn_fairseq.plugin  # noqa: F401
from syncattn_fairseq.criterions.terms import register_term
from syncattn_fairseq.criterions.terms.sync_attention import SyncAttentionTerm
from syncattn_fairseq.functional import sync_attention_loss


@dataclass
class SharpSyncOptions:
    """The weight of the loss."""

    sharp_sync_weight: float = field(
        default=0.0, metadata={"help": "weight of the synchronous loss without softmax"}
    )


@register_term("sharp_sync_loss")
class SharpSyncTerm(SyncAttentionTerm):
    """Squared distance between the decoder's dependency head and the normalised projection.

    Each row of the encoder's projected head is divided by its sum.
    """

    Options = SharpSyncOptions
    weight_option = "sharp_sync_weight"

    def applies(self, extra: dict[str, Any], sample: dict[str, Any]) -> bool:
        """Return whether the loss has a weight and the model a sync layer."""
        return self.weight > 0 and super().applies(extra, sample)

    @staticmethod
    def compare(target: Tensor, projected: Tensor, padding_mask: Tensor) -> Tensor:
        """Return the sum of squared differences between the decoder's head and the projection.

        Only places that the decoder's head can attend to count.
        """
        # The softmax of logarithms divides by the sum.
        return sync_attention_loss(target, projected.clamp_min(1e-9).log(), padding_mask)
