"""The loss that synchronises dependency heads of encoder and decoder (SyncAttn Eq. 7-9)."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ...base.option_fields import option
from ...functional import project_attention, sync_attention_loss
from .term import Log, Term, average_heads, join_heads, register_term


@dataclass
class SyncAttentionOptions:
    """SyncAttn's loss: its weight, and whether it includes the end of sentence."""

    sync_weight: float = option(0.5, "weight of SyncAttn's loss")
    sync_without_eos: bool = option(False, "SyncAttn's loss: leave out the end of sentence")


@register_term("sync_loss")
class SyncAttentionTerm(Term):
    """Squared difference of the decoder's dependency attention and that projected from the source.

    Several heads are averaged first. Tokens whose rows are zeros do not count: no decoder state
    stands for them (see :meth:`.DependencyHeads.attend`).

    The projection D' is a softmax of values between 0 and 1, and so nearly uniform: a uniform D has
    a lower loss than a gold tree (0.31 against 2.00 on one sentence). On its own, without a
    dependency loss, this loss teaches the decoder's head to be flat.
    """

    Options = SyncAttentionOptions
    weight_option = "sync_weight"

    def __init__(self, options: Any, task: Any) -> None:
        super().__init__(options, task)
        self.eos = task.target_dictionary.eos() if options.sync_without_eos else None

    def applies(self, extra: dict[str, Any], sample: dict[str, Any]) -> bool:
        """Return whether the model has a ``--sync-layer``, which projects parses to the target."""
        return "sync_attn" in extra

    def __call__(self, extra: dict[str, Any], sample: dict[str, Any]) -> tuple[Tensor, Log]:
        """Return the loss summed over all pairs of target tokens in the batch."""
        source, target = (
            average_heads(join_heads(extra[f"{side}_dependency"])) for side in ("src", "tgt")
        )
        projected = project_attention(source, extra["sync_attn"], extra.get("backward_attn"))
        masked = sample["target"].eq(self.pad) | target.detach().sum(-1).eq(0)
        if self.eos is not None:
            masked = masked | sample["target"].eq(self.eos)
        loss = self.compare(target, projected, masked)
        return loss, {}

    @staticmethod
    def compare(target: Tensor, projected: Tensor, padding_mask: Tensor) -> Tensor:
        """Return the loss between the target's and the projected dependency attention.

        Each is ``(B, T, T)``.
        """
        return sync_attention_loss(target, projected, padding_mask)
