"""Rows of padding, to bring batches with fewer sentences to a common shape.

A row has one token, the end of a sentence, on the source's side and as what the decoder has read: a
row of padding alone would have nothing to attend to, and its gradients are not numbers. All of its
target is padding, which no loss counts.
"""

from typing import Any

import torch
from torch import Tensor


def add_rows(batch: dict[str, Any], count: int, pairs: Any) -> None:
    """Append ``count`` rows of padding to a batch of fairseq.

    The numbers of tokens and of sentences stay those of the sentences.

    Args:
        batch: the batch, which is changed in place.
        count: the number of rows to add.
        pairs: fairseq's dataset, which knows the symbols and on which side padding is.
    """
    if not count:
        return
    net_input = batch["net_input"]

    def extend(tokens: Tensor, end: int | None) -> Tensor:
        rows = tokens.new_full((count, tokens.size(1)), pairs.src_dict.pad())
        if end is not None:
            rows[:, end] = pairs.eos
        return torch.cat([tokens, rows])

    for name, left in (
        ("src_tokens", pairs.left_pad_source),
        ("prev_output_tokens", pairs.left_pad_target),
    ):
        net_input[name] = extend(net_input[name], -1 if left else 0)
    batch["target"] = extend(batch["target"], None)
    lengths = net_input["src_lengths"]
    net_input["src_lengths"] = torch.cat([lengths, lengths.new_ones(count)])


def repeat_links(batch: dict[str, Any]) -> None:
    """Pad a batch's list of word links, so that batches have few different shapes.

    The number of links becomes a multiple of the number of target tokens: the first link is
    repeated, with weight 0. A loss that marks links in a table marks the same.
    """
    links: Tensor | None = batch.get("alignments")
    if links is None:
        return
    size = batch["target"].numel()
    missing = -len(links) % size
    batch["alignments"] = torch.cat([links, links[:1].expand(missing, -1)])
    weights = batch["align_weights"]
    batch["align_weights"] = torch.cat([weights, weights.new_zeros(missing)])
