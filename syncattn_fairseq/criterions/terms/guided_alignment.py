"""The loss that trains cross-attention on word alignments in the data (Garg et al., 2019)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...base.errors import DataError
from ...base.option_fields import flag, option
from ...functional import guided_alignment_loss
from .term import Log, Term, register_term


@dataclass
class GuidedAlignmentOptions:
    """Guided alignment (Garg et al., 2019): the weight of its loss."""

    guided_alignment_weight: float = option(
        0.0, "weight of the loss that trains cross-attention on the links of --load-alignments"
    )


@register_term("guided_alignment_loss")
class GuidedAlignmentTerm(Term):
    """Cross-entropy between word alignments in the data and the model's cross-attention.

    The loss trains the cross-attention of the aligning layer, which printers and SyncAttn's loss
    read, and that of the layers that project distances. It is averaged over these layers. Each
    cross-attention is the mean of the layer's
    first ``--aligned-heads`` heads. fairseq's ``transformer_align`` also decodes a second time,
    with the whole target in view, which this does not.
    """

    Options = GuidedAlignmentOptions
    weight_option = "guided_alignment_weight"

    def __init__(self, options: Any, task: Any) -> None:
        super().__init__(options, task)
        if self.weight > 0 and not getattr(getattr(task, "cfg", None), "load_alignments", True):
            raise DataError(
                f"{flag(self.weight_option)} {self.weight}: the loss needs links that "
                "syncattn-preprocess binarised; add --load-alignments"
            )

    def applies(self, extra: dict[str, Any], sample: dict[str, Any]) -> bool:
        """Return whether the loss has a weight above 0, alignments and cross-attention to train."""
        return self.weight > 0 and "alignments" in sample and bool(extra.get("attn"))

    def __call__(self, extra: dict[str, Any], sample: dict[str, Any]) -> tuple[Tensor, Log]:
        """Return the loss summed over the target tokens with a link."""
        aligning = extra["attn"]
        tied = extra.get("distance_attn", [])  # of which one may be the aligning layer's
        layers = [*aligning, *(one for one in tied if all(one is not other for other in aligning))]
        columns, rows = sample["alignments"].unbind(1)  # the rows count over the whole batch
        links = layers[0].new_zeros(layers[0].shape).flatten(0, 1)
        links = links.index_put((rows, columns), links.new_ones(())).view_as(layers[0])
        losses = [guided_alignment_loss(layer, links) for layer in layers]
        return torch.stack(losses).mean(), {}
