"""Draw the control trees of a split (:mod:`.controls`) once, and read them from files later.

Drawing takes longer than all else that a loader does for a sentence. The files are beside the
heads: `train.random.en-de.en.bin` and ``.idx`` are those of `train.heads.en-de.en`, and a `.sha256`
has their checksums and those of the checksums of the heads and the text that they were made from.
"""

import logging
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from fairseq.data.indexed_dataset import MMapIndexedDataset

from ..base.errors import DataError
from ..base.locks import locked
from .dataset import SyntaxPairDataset, find_parts
from .mmap_blocks import SUFFIX, have_sums, list_files, write_dataset, write_sums

logger = logging.getLogger(__name__)
#: Number of sentences that are written together.
_BLOCK = 1000


def read_drawn_controls(
    dataset: SyntaxPairDataset, folder: str, split: str, source: str, target: str, combine: bool
) -> None:
    """Let a dataset read its control trees (fake parses) from files; write missing files.

    Sentences get the trees that they would be given one by one. That still happens where there can
    be no file: of text that is cut, of heads without checksums, in a folder that is read only.

    Args:
        dataset: the dataset of the split.
        folder, split, source, target, combine: see :func:`.dataset.load_marks`.
    """
    parts = [*find_parts(Path(folder), split, source, target, combine)]
    pairs = dataset.dataset
    sides = {"source": (source, pairs.src_sizes), "target": (target, pairs.tgt_sizes)}
    for side, control in dataset.controls:
        language, lengths = sides[side]
        heads = dataset.heads[side]
        made_from = [Path(f"{part}.heads.{pair}.{language}{SUFFIX}") for part, pair in parts]
        if control == "words" or heads is None or not all(path.exists() for path in made_from):
            continue
        if not np.array_equal(lengths, heads.sizes + 1):
            continue  # cut, or with something before it: other words, and other trees
        part, pair = parts[0]
        path = f"{part}.{control}.{pair}.{language}"
        if _make(dataset, side, control, path, made_from):
            dataset.drawn[side, control] = MMapIndexedDataset(path)


def _make(
    dataset: SyntaxPairDataset, side: str, control: str, path: str, made_from: list[Path]
) -> bool:
    """Write the file of a control unless it is up to date; return whether that was possible."""
    sums, files = Path(path + SUFFIX), [*made_from, *list_files(path)]
    if have_sums(sums, files):
        return True
    lock = sums.with_name(f".{sums.name}.lock")
    try:
        with locked(
            lock,
            lambda: logger.info("%s: another process is drawing these trees; waiting for it", path),
        ):
            if not have_sums(sums, files):
                longest = int(dataset.heads[side].sizes.max(initial=0))
                dtype = np.int16 if longest <= np.iinfo(np.int16).max else np.int32
                write_dataset(Path(path), dtype, _draw(dataset, side, control))
                write_sums(sums, files)
                logger.info("%s: drew the trees of %d sentences", path, len(dataset))
            lock.unlink()
    except (OSError, DataError) as error:  # also of a full disk
        logger.info(
            "%s: cannot be written (%s), so the trees are drawn again in each epoch", path, error
        )
        return False
    return True


def _draw(
    dataset: SyntaxPairDataset, side: str, control: str
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    texts: Any = dataset.src if side == "source" else dataset.tgt
    heads = dataset.heads[side]
    drawn = (
        dataset.draw(side, control, index, texts[index], heads[index]).numpy()
        for index in range(len(dataset))
    )
    while block := [*islice(drawn, _BLOCK)]:
        yield np.concatenate(block), np.array([*map(len, block)], np.int32)
