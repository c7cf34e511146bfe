"""Dependency labels in the source embedding (Sennrich and Haddow, 2016)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..base.option_fields import option
from ..data.fields import LABELS, NOTHING, SourceFields
from .batch_view import BatchView
from .layer_numbers import check_range
from .part import Part, register_part


@dataclass
class LabelOptions:
    """Dependency labels in the source embedding (S&H): the number of their dimensions."""

    source_label_dim: int = option(
        0,
        "dimensions of the source embedding that hold the word's dependency label "
        "(S&H has 10; 0 = none)",
    )


@register_part("labels")
class LabelEmbedding(Part, nn.Embedding):
    """Embeddings of dependency labels, which are the last dimensions of source embeddings.

    This is Sennrich and Haddow's (WMT 2016) concatenation. If source and target share the token
    embedding, only the target uses its last columns. ``width`` is that of the whole embedding.
    """

    Options = LabelOptions

    def __init__(self, dictionary: Any, dim: int, width: int) -> None:
        super().__init__(len(dictionary), dim, padding_idx=dictionary.pad())
        nn.init.normal_(self.weight, std=width**-0.5)  # as fairseq does for tokens
        nn.init.zeros_(self.weight[dictionary.pad()])

    @classmethod
    def check(cls, cfg: Any) -> None:
        """Raise `DataError` if labels leave no dimension of the source embedding to tokens."""
        width = cfg.encoder.embed_dim
        explanation = f"the source embedding has {width} dimensions"
        check_range(cfg, "source_label_dim", 0, width - 1, explanation)

    @classmethod
    def list_fields(cls, cfg: Any) -> SourceFields:
        """Return the batch field of dependency labels, or none if the model embeds no labels."""
        return SourceFields(fields=frozenset([LABELS])) if cfg.source_label_dim else NOTHING

    def replace_last(self, embedded: Tensor, view: BatchView) -> Tensor:
        """Replace the last dimensions of token embeddings ``(B, S, D)`` by label embeddings.

        Raises:
            DataError: the batch has no labels.
        """
        labels = view.require("src_labels", reader="source embedding")
        return torch.cat([embedded[..., : -self.embedding_dim], self(labels)], dim=-1)
