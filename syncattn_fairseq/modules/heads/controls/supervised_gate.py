"""Heads gated by the distances of a parser's trees (Hou et al., 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ....data.fields import SourceField
from ....data.subwords import NO_HEAD, NO_TOKEN
from ....data.tree_distances import lay_out_trees
from ....functional.controls.supervised_gate import gap_heights, supervised_log_gates
from ...layer_numbers import encoder_layers_option
from ...part import register_part
from ..heads import Heads, Scope

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def collate_gap_heights(
    marks: Int[Tensor, "batch tokens"], tokens: Int[Tensor, "batch tokens"], dictionary: Any
) -> Float[Tensor, "batch tokens"]:
    """Compute syntactic distances between neighbouring words from a batch's parses, in float64.

    See :func:`.gap_heights`.

    The end of a sentence is attached to the root, like a full stop. NaN for padding and in
    sentences without a parse; arbitrary at a sentence's first token, before which is no gap.
    """
    ends = tokens.eq(dictionary.eos())
    parents, words = lay_out_trees(marks, ends)
    outside = (marks == NO_TOKEN) & ~ends
    unparsed = (marks == NO_HEAD).any(dim=1, keepdim=True)
    return gap_heights(parents, words).double().masked_fill(outside | unparsed, float("nan"))


#: ``src_gap_heights``: ``(B, S)``, see :func:`collate_gap_heights`.
GAP_HEIGHTS = SourceField("src_gap_heights", collate_gap_heights, needs_tree=True)


@dataclass
class SupervisedGateOptions:
    """Supervised gates (Hou et al., 2022): the encoder layers whose heads have them."""

    supervised_gate_layers: str = encoder_layers_option(
        "whose heads are gated by the distances of the parser's trees"
    )


@register_part("supervised_gate")
class SupervisedGateHeads(Heads):
    """Heads without parameters, gated by distances in a parser's trees (Hou et al., 2022).

    The distances come from the dependency tree, the only tree that is binarised with the text. In a
    sentence without a parse all gates are open.
    """

    Options = SupervisedGateOptions
    title = "gated (supervised)"
    encoder_layers = "supervised_gate_layers"
    reads = GAP_HEIGHTS

    def bias(
        self,
        query: Float[Tensor, "batch heads tokens width"],
        key: Float[Tensor, "batch heads tokens width"],
        scope: Scope,
    ) -> Float[Tensor, "batch 1 tokens tokens"]:
        """Return the logarithm of the gates set by the parser's trees, which all heads share."""
        heights = self.read()
        wide = torch.promote_types(query.dtype, torch.float32)
        gates = self.share(wide, lambda: supervised_log_gates(heights.to(wide)))
        return gates.unsqueeze(1)
