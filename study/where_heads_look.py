"""Measure where self-attention looks: at the token itself, next to it, or at its parent.

    python -m study.where_heads_look data-bin/multi30k_tiny_en_de_3625 \
        checkpoints/multi30k_tiny_en_de_3625/{transformer,pascal}/1/checkpoint_best.pt

For each kind of heads in each layer, means over its heads and the validation text, in % of a
token's attention:

- *flat*: what each token would get if all visible ones got the same;
- *itself*, *next to it*: what the token itself gets, and what its two neighbours get together; in
  the decoder, where ``<s>`` is a token too, only the one before it is visible;
- *parent*, *mirror*: only over source tokens whose parent is at least two subwords away, because a
  closer one gets attention as a neighbour. What the parent gets (its middle subword), and what the
  token as far away on the other side gets. A head that ignores the parse gives both about the same.
"""

import argparse
import logging
import math
import warnings
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from torch import Tensor
from tqdm import tqdm

import syncattn_fairseq.plugin  # noqa: F401
from syncattn_fairseq.base.text_tables import format_table
from syncattn_fairseq.data.fields import PARENT_POSITIONS, SourceFields
from syncattn_fairseq.inference.recorded_attention import LayerAttention, record_attention

COLUMNS = ("flat", "itself", "next to it", "parent", "mirror", "best head's parent", "its mirror")


def look(
    attention: Tensor, parents: Tensor, words: Tensor, visible: Tensor
) -> tuple[Tensor, Tensor]:
    """Add up the attention to each of the places, and count the tokens.

    Args:
        attention: ``(B, h, T, T)``.
        parents: ``(B, T)`` columns; NaN = none.
        words: ``(B, T)``, False = padding or end of sentence.
        visible: how many tokens each token sees, broadcasts to ``(B, T)``.

    Returns:
        ``(h, 5)`` in the order flat, itself, next to it, parent, mirror; and the number of tokens
        in each of the five.
    """
    length = words.size(1)
    rows = torch.arange(length)
    distance = (parents.nan_to_num(0).round().long() - rows).masked_fill(parents.isnan(), 0)
    mirror = (rows - distance).clamp(0, length - 1)
    inside = (rows - distance == mirror) & words.gather(1, mirror)
    far = words & (distance.abs() >= 2) & inside
    itself = attention.diagonal(dim1=-2, dim2=-1)
    beside = torch.zeros_like(itself)
    beside[..., 1:] += attention.diagonal(-1, -2, -1)
    beside[..., :-1] += attention.diagonal(1, -2, -1)
    flat = visible.reciprocal().unsqueeze(1).expand_as(itself)
    found = [(flat, words), (itself, words), (beside, words)]
    for column in (rows + distance, mirror):
        index = column[:, None, :, None].expand(-1, attention.size(1), -1, 1)
        found.append((attention.gather(3, index).squeeze(3), far))
    sums = [(share * chosen[:, None]).sum((0, 2)) for share, chosen in found]
    return torch.stack(sums, dim=1), torch.stack([chosen.sum() for _, chosen in found])


def measure(path: Path, data: str) -> list[list[str]]:
    """Return a row for each kind of heads in each layer."""
    [model], _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(path)], arg_overrides={"data": data}
    )
    model.eval()

    def batches(fields: SourceFields) -> list[Any]:
        task.fields = fields
        task.load_dataset("valid")
        iterator = task.get_batch_iterator(task.dataset("valid"), max_tokens=2048, seed=1)
        return list(iterator.next_epoch_itr(shuffle=False))

    sums: dict[tuple[str, int, str], Any] = {}

    def add(side: str, layers: list[LayerAttention], *places: Tensor) -> None:
        for number, layer in enumerate(layers, 1):
            for name in dict.fromkeys(layer.kinds):
                heads = [place for place, kind in enumerate(layer.kinds) if kind == name]
                found = look(layer.attention[:, heads], *places)
                before = sums.get((side, number, name), (0, 0))
                sums[side, number, name] = tuple(a + b for a, b in zip(before, found, strict=True))

    own = batches(task.fields)
    parsed = batches(SourceFields(fields=frozenset([PARENT_POSITIONS])))
    for sample, parse in zip(tqdm(own, str(path), leave=False), parsed, strict=True):
        tokens, earlier = (sample["net_input"][x] for x in ("src_tokens", "prev_output_tokens"))
        assert tokens.equal(parse["net_input"]["src_tokens"])
        found = record_attention(model, sample["net_input"])
        padding = tokens.eq(task.source_dictionary.pad())
        words = ~padding & tokens.ne(task.source_dictionary.eos())
        visible = (~padding).sum(1, keepdim=True)
        parents = parse["net_input"]["src_parent_positions"]
        add("encoder", found["encoder"], parents, words, visible)
        words = earlier.ne(task.target_dictionary.pad())
        visible = torch.arange(1, earlier.size(1) + 1).expand_as(earlier)
        add("decoder", found["decoder"], torch.full(earlier.shape, torch.nan), words, visible)
    rows = []
    for (side, number, name), (total, count) in sums.items():
        share = 100 * total / count
        best = share[share[:, 3].argmax()]
        means = [*share.mean(0).tolist(), *best[3:].tolist()]
        where = ["/".join(path.parts[-3:-1]), f"{side} {number}", f"{len(share)} {name}"]
        rows.append([*where, *("–" if math.isnan(x) else f"{x:.1f}" for x in means)])
    return rows


@torch.no_grad()
def main() -> None:
    """Print the table."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("data", help="the binarised corpus, with the source's heads")
    made.add_argument("checkpoints", nargs="+", type=Path)
    args = made.parse_args()
    logging.disable(logging.INFO)
    warnings.filterwarnings("ignore", "'pin_memory'")
    rows = [["training", "layer", "heads", *COLUMNS]]
    for path in args.checkpoints:
        rows += measure(path, args.data)
    print(format_table(rows))


if __name__ == "__main__":
    main()
