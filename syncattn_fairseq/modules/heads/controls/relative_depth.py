"""Heads that see how much deeper in the tree a key is than the query (Omote et al., 2019)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ....base.option_fields import option
from ....data.fields import NOTHING, SourceField, SourceFields
from ....data.subwords import NO_HEAD
from ....data.tree_distances import lay_out_trees
from ....functional.controls.relative_depth import relative_depth_scores, tree_depths
from ...batch_view import BatchView
from ...layer_numbers import check_range
from ...part_registry import register_part
from ...slot import Slot
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

    relative_depth_layers: str = option(
        "",
        "encoder layers whose heads see the depth of each word in the dependency tree "
        "relative to their own, such as 1,2, or all (none)",
    )
    relative_depth_limit: int = option(8, "largest difference of depths; larger ones count as this")


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

    def __init__(self, count: int, head_dim: int, view: BatchView, limit: int = 8) -> None:
        super().__init__(count, head_dim, view)
        self.embedding = nn.Parameter(torch.empty(2 * limit + 1, head_dim))
        nn.init.xavier_uniform_(self.embedding)

    @classmethod
    def build(cls, cfg: Any, slot: Slot) -> "RelativeDepthHeads":
        """Build the heads of one layer."""
        return cls(slot.count, slot.head_dim, slot.view, cfg.relative_depth_limit)

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Check the limit."""
        check_range(cfg, "relative_depth_limit", 1, float("inf"), "must be 1 or more")

    @classmethod
    def list_fields(cls, cfg: Any) -> SourceFields:
        """Ask for the depths."""
        used = bool(cls.list_layers(cfg, "encoder"))
        return SourceFields(fields=frozenset([DEPTHS])) if used else NOTHING

    def bias(self, query: Tensor, key: Tensor, scope: Scope) -> Tensor:
        """Return the scores of the relative depths."""
        depths = self.view.require(DEPTHS.name, reader="relative-depth heads")
        return relative_depth_scores(query, depths, self.embedding)
