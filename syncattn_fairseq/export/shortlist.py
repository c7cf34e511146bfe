"""The target subwords allowed in translations of each source subword."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any

import numpy as np

from ..base.errors import DataError, naming_full_disk
from .fold import FoldedModel

#: How many links are in memory at a time.
_LINKS = 2**20
_PASSES = 5
_SPECIAL = 4  # <s>, <pad>, </s> and <unk> come first

Pair = tuple[np.ndarray, np.ndarray]


def write_shortlist(folded: FoldedModel, folder: Path, number: int) -> None:
    """Write CTranslate2's vocabulary map: ``number`` target subwords for each source subword.

    Raises:
        DataError: the corpus has no training text.
    """
    sizes = len(folded.source_words), len(folded.target_words)
    with naming_full_disk(Path(gettempdir())):
        frequent, shortlists = make_shortlists(_read_pairs(folded.task), sizes, number)
    with (folder / "vmap.txt").open("w", encoding="utf-8") as file:
        for word, targets in [("", frequent), *zip(folded.source_words, shortlists, strict=True)]:
            if len(targets):
                file.write(f"{word}\t{' '.join(folded.target_words[t] for t in targets)}\n")


def _read_pairs(task: Any) -> Iterator[Pair]:
    try:
        task.load_dataset("train")
    except FileNotFoundError:
        raise DataError(
            f"{task.cfg.data}: has no training text, from which --shortlist is counted; give the "
            "folder of the binarised corpus"
        ) from None
    dataset = task.datasets["train"]
    for index in range(len(dataset)):
        yield dataset.src[index].numpy(), dataset.tgt[index].numpy()


def make_shortlists(
    pairs: Iterable[Pair], sizes: tuple[int, int], number: int
) -> tuple[np.ndarray, Sequence[np.ndarray]]:
    """Choose for each source symbol the most probable target symbols in translations.

    Probabilities `p(t | s)` are those of a lexical translation model (IBM Model 1, Brown et al.,
    1993), which explains each target symbol by one of the source's:

    .. math:: p(t | s) = n(t, s) / Σ_u n(u, s)
    .. math:: n(t, s) = Σ_pairs p(t | s) / Σ_r p(t | r)

    over the different symbols r of the pair's source, from equal probabilities on, five times. A
    temporary file holds up to 12 bytes for each link of a source and a target symbol of a pair.

    Args:
        pairs: the symbols of the source and the target of each sentence pair.
        sizes: the sizes of the source and of the target vocabulary.
        number: the number of target symbols to choose.

    Returns:
        the most frequent target symbols, for every sentence; and those of each source symbol.
    """
    table, waiting = np.zeros(0, np.int64), [np.zeros(0, np.int64)]  # the different links
    blocks, seen = [], np.zeros(sizes[1], np.int64)
    with TemporaryFile() as file:
        for block in _cut_blocks(pairs):
            sides = map(_find_symbols, zip(*block, strict=True))
            (sources, per_source), (targets, per_target) = sides
            each = np.repeat(per_source, per_target)  # links of each target
            steps = np.repeat(per_source.cumsum() - per_source, per_target) - each.cumsum() + each
            sources = sources[np.arange(each.sum()) + np.repeat(steps, each)]
            links, where = _number(sources * sizes[1] + np.repeat(targets, each))
            links.tofile(file)
            where.tofile(file)
            blocks.append((per_source, per_target * (per_source > 0), len(links)))
            seen += np.bincount(targets, minlength=sizes[1])
            waiting.append(links)
            if sum(map(len, waiting)) > len(table):
                table, waiting = _merge([table, *waiting]), []
        table, waiting = _merge([table, *waiting]), []
        bounds = np.searchsorted(table, np.arange(sizes[0] + 1) * sizes[1])  # of each source symbol
        known = bounds[:-1] < bounds[1:]
        probabilities = np.ones(len(table))
        for done in range(_PASSES):
            counts = np.zeros(len(table))
            file.seek(0)
            for per_source, per_target, size in blocks:
                place = np.fromfile(file, np.int64, size)
                if not done:
                    place = np.searchsorted(table, place)
                    file.seek(-place.nbytes, os.SEEK_CUR)
                    place.tofile(file)
                each = np.repeat(per_source, per_target)
                where = np.fromfile(file, np.int32, each.sum())
                weights = probabilities[place][where]
                weights /= np.repeat(np.add.reduceat(weights, each.cumsum() - each), each)
                counts[place] += np.bincount(where, weights, minlength=size)
            totals = np.add.reduceat(counts, bounds[:-1][known])
            probabilities = np.divide(counts, np.repeat(totals, np.diff(bounds)[known]), counts)
    shortlists = [
        table[a:b][np.argsort(-probabilities[a:b], kind="stable")[:number]] % sizes[1]
        for a, b in pairwise(bounds)
    ]
    frequent = np.argsort(-seen, kind="stable")[:number]
    return frequent[seen[frequent] > 0], shortlists


def _cut_blocks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Yield blocks of pairs, each with about ``_LINKS`` links in all."""
    block: list[Pair] = []
    left = _LINKS
    for source, target in pairs:
        block.append((source, target))
        left -= len(source) * len(target)
        if left <= 0:
            yield block
            block, left = [], _LINKS
    if block:
        yield block


def _find_symbols(sentences: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct symbols of each sentence, concatenated, and their number in each."""
    number = np.repeat(np.arange(len(sentences)), [len(symbols) for symbols in sentences])
    symbols = np.concatenate(sentences).astype(np.int64)
    different = _merge([(number << 32 | symbols)[symbols >= _SPECIAL]])
    return different & 2**32 - 1, np.bincount(different >> 32, minlength=len(sentences))


def _merge(links: Sequence[np.ndarray]) -> np.ndarray:
    """Return the distinct numbers of all arrays, sorted; ``np.unique`` would be slower here."""
    merged = np.concatenate(links)
    merged.sort()
    return merged[np.append(merged[:1] >= 0, merged[1:] != merged[:-1])]


def _number(links: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct links, sorted, and the index of each link among these, int32."""
    bits = len(links).bit_length()  # sorting pairs of a link and its position is much faster
    ordered = np.sort(links << bits | np.arange(len(links)))
    first = np.diff(ordered >> bits, prepend=-1) > 0
    where = np.empty(len(links), np.int32)
    where[ordered & 2**bits - 1] = first.cumsum() - 1
    return ordered[first] >> bits, where
