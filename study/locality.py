"""Measure how local dependency trees are: a parser's, and those of its controls.

    python -m study.locality corpora/multi30k_tiny_en_de_3625/words/train.heads.en

For all pairs of words of a sentence, the distance in the text and the number of edges between them
in the tree; printed is how both correlate, and how long the arcs are. ``shuffled`` is missing,
since it makes no trees. A tree that is less local than the parse is no control of its syntax.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from syncattn_fairseq.base.text import open_text
from syncattn_fairseq.base.text_tables import format_table
from syncattn_fairseq.data.controls import CONTROLS
from syncattn_fairseq.functional import tree_distances

from .start import take_others

Change = Callable[[Tensor, np.random.Generator], Tensor]
TREES: dict[str, Change] = {"parse": lambda heads, _: heads} | {
    name: change for name, change in CONTROLS.items() if name != "shuffled"
}


def read_heads(path: Path) -> list[Tensor]:
    """Read the dependency heads of sentences with two words or more, ``(n,)``, from 1."""
    with open_text(path) as lines:
        sentences = [torch.tensor([*map(int, line.split())]) for line in lines]
    return [heads for heads in sentences if len(heads) > 1 and bool((heads >= 0).all())]


def list_trees(sentences: Sequence[Tensor]) -> dict[str, list[Tensor]]:
    """Return the heads of all sentences in the parser's trees and in those of each control.

    ``another`` has the tree of another sentence with as many words.
    """
    generator = np.random.default_rng(1)
    trees = {
        name: [change(heads, generator) for heads in sentences] for name, change in TREES.items()
    }
    others = take_others([heads.tolist() for heads in sentences], 1)
    return {**trees, "another": [*map(torch.tensor, others)]}


def measure(sentences: Sequence[Tensor]) -> tuple[float, float]:
    """Return how distances in tree and text correlate, and the mean length of arcs in words."""
    in_text, in_tree, lengths = [], [], []
    for heads in sentences:
        words = torch.arange(len(heads))
        parents = torch.where(heads > 0, heads - 1, words)
        first, second = torch.triu_indices(len(heads), len(heads), 1)
        in_text.append(second - first)
        in_tree.append(tree_distances(parents.unsqueeze(0))[0, first, second])
        lengths.append((words - parents).abs()[heads > 0])
    pairs = torch.stack([torch.cat(in_text), torch.cat(in_tree)]).double()
    return float(torch.corrcoef(pairs)[0, 1]), float(torch.cat(lengths).double().mean())


def main() -> None:
    """Print how local the parser's trees and each control's trees are."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("heads", type=Path, help="1-based heads of words, a sentence per line")
    sentences = read_heads(made.parse_args().heads)
    rows = [["trees", "correlation with the distance in the text", "words per arc"]]
    for name, trees in list_trees(sentences).items():
        correlation, length = measure(trees)
        rows.append([name, f"{correlation:.2f}", f"{length:.2f}"])
    pairs = sum(len(heads) * (len(heads) - 1) // 2 for heads in sentences)
    print(f"{len(sentences):,} sentences, {pairs:,} pairs of words\n\n{format_table(rows)}")


if __name__ == "__main__":
    main()
