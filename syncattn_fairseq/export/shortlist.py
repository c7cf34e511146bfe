"""The target subwords that translations of each source subword may contain."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any

import numpy as np

from ..base.errors import DataError, naming_full_disk
from .fold import FoldedModel

#: How many links are in memory at a time.
_LINKS = 2**22
_PASSES = 5
_SPECIAL = 4  # <s>, <pad>, </s> and <unk> come first

Pair = tuple[np.ndarray, np.ndarray]


def write_shortlist(folded: FoldedModel, folder: Path, number: int) -> None:
    """Write CTranslate2's vocabulary map, with so many target subwords for each of the source.

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
            f"{task.cfg.data}: no training text, which --shortlist reads; give the folder of the "
            "binarised corpus"
        ) from None
    dataset = task.datasets["train"]
    for index in range(len(dataset)):
        yield dataset.src[index].numpy(), dataset.tgt[index].numpy()


def make_shortlists(
    pairs: Iterable[Pair], sizes: tuple[int, int], number: int
) -> tuple[np.ndarray, Sequence[np.ndarray]]:
    """Choose the target symbols that most probably translate a source symbol.

    Probabilities `p(t | s)` are those of a lexical translation model (IBM Model 1, Brown et al.,
    1993), which explains each target symbol by one of the source's:

    .. math:: p(t | s) = n(t, s) / Σ_u n(u, s)
    .. math:: n(t, s) = Σ_pairs p(t | s) / Σ_r p(t | r)

    over the different symbols r of the pair's source, from equal probabilities on, five times. A
    temporary file holds about 6 bytes for each link of a source and a target symbol of a pair.

    Args:
        pairs: the symbols of each source and target.
        sizes: of both vocabularies.
        number: of target symbols to choose.

    Returns:
        the most frequent target symbols, for every sentence; and those of each source symbol.
    """
    table, waiting = np.zeros(0, np.int64), [np.zeros(0, np.int64)]  # the different links
    blocks, seen = [], np.zeros(sizes[1], np.int64)
    with TemporaryFile() as file:
        for block in _cut_blocks(pairs):
            (sources, per_source), (targets, per_target) = map(
                _find_symbols, zip(*block, strict=True)
            )
            links = np.repeat(sources * sizes[1], np.repeat(per_target, per_source))
            links, where = _number(links + targets[_explain(per_source, per_target)])
            links.tofile(file)
            where.tofile(file)
            blocks.append((per_source, per_target, len(links)))
            seen += np.bincount(targets, minlength=sizes[1])
            waiting.append(links)
            if sum(map(len, waiting)) > len(table):
                table, waiting = _merge([table, *waiting]), []
        table = _merge([table, *waiting])
        source, target = np.divmod(table, sizes[1])
        probabilities = np.ones(len(table))
        for _ in range(_PASSES):
            counts = np.zeros(len(table))
            file.seek(0)
            for per_source, per_target, size in blocks:
                place = np.searchsorted(table, np.fromfile(file, np.int64, size))
                explained = _explain(per_source, per_target)
                where = np.fromfile(file, np.int32, len(explained))
                weights = probabilities[place][where]
                weights /= np.bincount(explained, weights)[explained]
                counts[place] += np.bincount(where, weights, minlength=size)
            probabilities = counts / np.bincount(source, counts, minlength=sizes[0])[source]
    order = np.lexsort((target, -probabilities, source))
    bounds = np.searchsorted(source[order], np.arange(sizes[0] + 1))
    shortlists = [target[order[a:b][:number]] for a, b in zip(bounds, bounds[1:], strict=False)]
    frequent = np.argsort(-seen, kind="stable")[:number]
    return frequent[seen[frequent] > 0], shortlists


def _cut_blocks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Split pairs into blocks that do not have many more than ``_LINKS`` links."""
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
    """Return each sentence's different symbols, one after the other, and how many each has."""
    number = np.repeat(np.arange(len(sentences)), [len(symbols) for symbols in sentences])
    symbols = np.concatenate(sentences).astype(np.int64)
    different = _merge([(number << 32 | symbols)[symbols >= _SPECIAL]])
    return different & 2**32 - 1, np.bincount(different >> 32, minlength=len(sentences))


def _merge(links: Sequence[np.ndarray]) -> np.ndarray:
    """Return the different numbers of all, sorted; ``np.unique`` hashes, which is slower here."""
    merged = np.sort(np.concatenate(links))
    return merged[np.diff(merged, prepend=-1) > 0]


def _number(links: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different links, sorted, and the place of each link among them, int32."""
    bits = len(links).bit_length()  # sorting pairs of a link and its position is much faster
    ordered = np.sort(links << bits | np.arange(len(links)))
    first = np.diff(ordered >> bits, prepend=-1) > 0
    where = np.empty(len(links), np.int32)
    where[ordered & 2**bits - 1] = first.cumsum() - 1
    return ordered[first] >> bits, where


def _explain(per_source: np.ndarray, per_target: np.ndarray) -> np.ndarray:
    """Return the number of each link's target in the block: pair by pair, source by source.

    Both arguments, ``(pairs,)``, are numbers of symbols.
    """
    begins, lengths = (
        np.repeat(each, per_source * (per_target > 0))
        for each in (per_target.cumsum() - per_target, per_target)
    )
    steps = np.ones(lengths.sum(), np.int32)  # on to the next target; back to a pair's first
    steps[lengths.cumsum() - lengths] = np.diff(begins, prepend=1) - np.append(0, lengths[:-1]) + 1
    return steps.cumsum(out=steps)
