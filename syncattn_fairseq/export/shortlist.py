"""The target subwords that translations of each source subword may contain."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ..base.errors import DataError
from .folded_model import FoldedModel

#: How many training pairs are read, spread over the corpus.
PAIRS = 100_000
_BLOCK = 1000
_PASSES = 5
_SPECIAL = 4  # <s>, <pad>, </s> and <unk> come first

Pair = tuple[np.ndarray, np.ndarray]


def write_shortlist(folded: FoldedModel, folder: Path, number: int) -> None:
    """Write CTranslate2's vocabulary map into an exported folder.

    Args:
        folded: the model, with its corpus.
        folder: where ``vmap.txt`` goes.
        number: of target subwords for each source subword.

    Raises:
        DataError: the corpus has no training text.
    """
    sizes = len(folded.source_words), len(folded.target_words)
    frequent, shortlists = make_shortlists(_training_pairs(folded.task), sizes, number)
    with (folder / "vmap.txt").open("w", encoding="utf-8") as file:
        for word, targets in [("", frequent), *zip(folded.source_words, shortlists, strict=True)]:
            if len(targets):
                file.write(f"{word}\t{' '.join(folded.target_words[t] for t in targets)}\n")


def _training_pairs(task: Any) -> list[Pair]:
    try:
        task.load_dataset("train")
    except FileNotFoundError:
        raise DataError(
            f"{task.cfg.data}: no training text, which --shortlist reads; give the folder of the "
            "binarised corpus"
        ) from None
    dataset = task.datasets["train"]
    chosen = range(0, len(dataset), -(-len(dataset) // PAIRS))
    return [(_symbols(dataset.src[i]), _symbols(dataset.tgt[i])) for i in chosen]


def _symbols(tokens: Tensor) -> np.ndarray:
    symbols: np.ndarray = np.unique(tokens[tokens >= _SPECIAL].numpy()).astype(np.int64)
    return symbols


def make_shortlists(
    pairs: Sequence[Pair], sizes: tuple[int, int], number: int
) -> tuple[np.ndarray, Sequence[np.ndarray]]:
    """Choose the target symbols that most probably translate a source symbol.

    Probabilities `p(t | s)` are those of a lexical translation model (IBM Model 1, Brown et al.,
    1993), which explains each target symbol by one of the source's:

    .. math:: p(t | s) = n(t, s) / Σ_u n(u, s)
    .. math:: n(t, s) = Σ_pairs p(t | s) / Σ_r p(t | r)

    over the symbols r of the pair's source, from equal probabilities on, five times.

    Args:
        pairs: the different symbols of each source and target.
        sizes: of both vocabularies.
        number: of target symbols to choose.

    Returns:
        the most frequent target symbols, for every sentence; and those of each source symbol.
    """
    blocks = [pairs[i : i + _BLOCK] for i in range(0, len(pairs), _BLOCK)]
    table = np.zeros(0, np.int64)
    for block in blocks:
        table = np.union1d(table, _links(block, sizes[1])[0])
    source, target = np.divmod(table, sizes[1])
    probabilities = np.ones(len(table))
    for _ in range(_PASSES):
        counts = np.zeros(len(table))
        for block in blocks:
            links, explained = _links(block, sizes[1])
            where = np.searchsorted(table, links)
            weights = probabilities[where]
            weights /= np.bincount(explained, weights)[explained]
            counts += np.bincount(where, weights, minlength=len(table))
        probabilities = counts / np.bincount(source, counts, minlength=sizes[0])[source]
    order = np.lexsort((target, -probabilities, source))
    bounds = np.searchsorted(source[order], np.arange(sizes[0] + 1))
    shortlists = [target[order[a:b][:number]] for a, b in zip(bounds, bounds[1:], strict=False)]
    seen = np.bincount(np.concatenate([side for _, side in pairs]), minlength=sizes[1])
    frequent = np.argsort(-seen, kind="stable")[:number]
    return frequent[seen[frequent] > 0], shortlists


def _links(block: Sequence[Pair], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each link of a source and a target symbol of a pair, and which of these targets."""
    links, explained, first = [], [], 0
    for source, target in block:
        links.append((source[:, None] * width + target).ravel())
        explained.append(np.tile(first + np.arange(len(target)), len(source)))
        first += len(target)
    return np.concatenate(links), np.concatenate(explained)
