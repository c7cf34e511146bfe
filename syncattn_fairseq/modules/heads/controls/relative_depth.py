"""Heads that see how much deeper in the tree a key is than the query (Omote et al., 2019)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ....base.option_fields import option
from ....data.fields import SourceField
from ....data.subwords import NO_HEAD
from ....data.tree_distances import lay_out_trees
from ....functional.controls.relative_depth import relative_depth_scores, tree_depths
from ...batch_view import BatchView
from ...layer_numbers import encoder_layers_option
from ...part import register_part
from ..heads import Heads, Scope


def collate_depths(marks: Tensor, tokens: Tensor, dictionary: Any) -> Tensor:
    """Count the words above each token's word.

    The end of a sentence hangs from the root, as a full stop does. Where truncation has cut off the
    head of a word, the word counts as a root.

    Returns:
        ``(B, S)`` int16; all 0 in a sentence without a parse, and for padding.
    """
    parents, words = lay_out_trees(marks, tokens.eq(dictionary.eos()))
    depths = tree_depths(parents).gather(1, words)
    unparsed = (marks == NO_HEAD).any(dim=1, keepdim=True)
    return depths.masked_fill(unparsed, 0).short()


#: ``src_depths``: ``(B, S)``, see :func:`collate_depths`.
DEPTHS = SourceField("src_depths", collate_depths)


@dataclass
class RelativeDepthOptions:
    """Relative depth: which heads see it and how many depths they distinguish."""

    relative_depth_layers: str = encoder_layers_option(
        "whose heads see the depth of each word in the dependency tree relative to their own"
    )
    relative_depth_limit: int = option(
        8, "largest difference of depths; larger ones count as this", at_least=1
    )


@register_part("relative_depth")
class RelativeDepthHeads(Heads):
    """Heads that add an embedding of the relative depth, shared by all heads, to their keys.

    Args:
        count, head_dim, view: as for :class:`.Heads`.
        limit: K.
    """

    Options = RelativeDepthOptions
    title = "relative-depth"
    encoder_layers = "relative_depth_layers"
    arguments = ("relative_depth_limit",)
    reads = DEPTHS

    def __init__(self, count: int, head_dim: int, view: BatchView, limit: int = 8) -> None:
        super().__init__(count, head_dim, view)
        self.embedding = nn.Parameter(torch.empty(2 * limit + 1, head_dim))
        nn.init.xavier_uniform_(self.embedding)

    def bias(self, query: Tensor, key: Tensor, scope: Scope) -> Tensor:
        """Return the scores of the relative depths."""
        return relative_depth_scores(query, self.read(), self.embedding)
