"""Your own plugin: two kinds of heads and a loss that syncattn-fairseq does not have.

    fairseq-train DATA --user-dir examples/user_dir --task translation_with_syntax \
        --arch transformer_dbsa --outward-layers 2 \
        --criterion label_smoothed_cross_entropy_with_syntax --src-entropy-weight 0.1 ...

Importing syncattn_fairseq.plugin registers everything that the library has; the classes below are
registered in addition, with their options.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

import syncattn_fairseq.plugin  # noqa: F401
from syncattn_fairseq.criterions.terms import Term, register_term
from syncattn_fairseq.data.fields import SourceField
from syncattn_fairseq.modules import register_part
from syncattn_fairseq.modules.heads import Heads, Scope
from syncattn_fairseq.modules.positions import offsets


@dataclass
class OutwardOptions:
    """Outward heads: the layers that have them."""

    outward_layers: str = field(
        default="",
        metadata={"help": "encoder layers whose heads do not see themselves (none)"},
    )
    outward_decoder_layers: str = field(
        default="", metadata={"help": "the same for the decoder; same: those of the encoder (none)"}
    )


@register_part("outward")
class OutwardHeads(Heads):
    """Heads that look at every token except their own."""

    Options = OutwardOptions
    title = "outward"
    encoder_layers = "outward_layers"
    decoder_layers = "outward_decoder_layers"

    def bias(self, query: Tensor, key: Tensor, scope: Scope) -> Tensor:
        """Return a large negative number where the key is the query's own token.

        In step-by-step decoding, ``query`` has one row, that of the last of ``key``'s tokens.
        """
        own = offsets(query.size(2), key.size(2), query.device) == 0
        return query.new_zeros(own.shape).masked_fill(own, -1e4)


def find_root(marks: Tensor, tokens: Tensor, dictionary: Any) -> Tensor:
    """Return 1 at the first subword of each sentence's root, ``(B, S)``."""
    return (marks == 0).short()


ROOT = SourceField("src_root", find_root)


@dataclass
class RootOptions:
    """Root heads: the layers that have them."""

    root_layers: str = field(
        default="", metadata={"help": "encoder layers whose heads know the root (none)"}
    )


@register_part("root")
class RootHeads(Heads):
    """Heads that learn how much more to look at the root of the source's parse."""

    Options = RootOptions
    title = "root"
    encoder_layers = "root_layers"
    reads = ROOT

    def __init__(self, count: int, head_dim: int, view: Any) -> None:
        super().__init__(count, head_dim, view)
        self.bonus = nn.Parameter(torch.zeros(count))

    def bias(self, query: Tensor, key: Tensor, scope: Scope) -> Tensor:
        """Return each head's bonus where the key is the root, ``(B, h, 1, S)``."""
        return self.bonus[:, None, None] * self.read()[:, None, None]


@dataclass
class EntropyOptions:
    """The weight of the loss."""

    src_entropy_weight: float = field(
        default=0.0, metadata={"help": "weight of the entropy of the source's dependency heads"}
    )


@register_term("src_entropy")
class EntropyTerm(Term):
    """Sum of the entropies of the encoder's dependency heads, to make these heads more certain."""

    Options = EntropyOptions
    weight_option = "src_entropy_weight"

    def applies(self, extra: dict[str, Any], sample: dict[str, Any]) -> bool:
        """Return whether the loss has a weight and the encoder has dependency heads."""
        return self.weight > 0 and "src_dependency" in extra

    def __call__(
        self, extra: dict[str, Any], sample: dict[str, Any]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Sum entropies over tokens, averaged over heads."""
        attention = torch.cat(extra["src_dependency"], dim=1)
        tiny = torch.finfo(attention.dtype).tiny
        entropy = -(attention * attention.clamp_min(tiny).log()).sum(-1).mean(1)
        padding = sample["net_input"]["src_tokens"].eq(self.pad)
        loss = entropy.masked_fill(padding, 0.0).sum()
        return loss, {}
