"""The parts of a training text, in one or several folders, with or without parses."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq.data import ConcatDataset
from fairseq.data.indexed_dataset import MMapIndexedDataset, data_file_path
from torch import Tensor

from ..base.errors import DataError
from .dataset import find_parts, load_marks
from .mmap_blocks import check_dataset
from .parses import LINKS


@dataclass(frozen=True)
class Part:
    """A part of a training text, with its number of sentences and its annotations.

    Attributes:
        path: the beginning of the paths of its files, before the languages.
        sentences: the number of its sentences.
        has: the needed annotations that the part has, such as ``heads.en``.
    """

    path: Path
    sentences: int
    has: frozenset[str]


def look_at_parts(
    folders: Sequence[str], split: str, source: str, target: str, needs: Iterable[str]
) -> list[Part]:
    """List all parts of a training text, each with the part's annotations.

    Args:
        folders: the folders of the text, of which each epoch reads the next one.
        split: the name of the text.
        source: the source language.
        target: the target language.
        needs: the needed annotations, such as ``heads.en``, ``labels.en``, ``align``.

    Raises:
        DataError: a folder has no such text, or parses that do not belong to it.
    """
    parts = []
    for folder in folders:
        found = [*find_parts(Path(folder), split, source, target, combine=True)]
        if not found:
            raise DataError(
                f"{folder}: no {split}.{source}-{target}.{source}.idx; binarise a text there with "
                "syncattn-preprocess, or leave the folder out"
            )
        for path, pair in found:
            text = f"{path}.{pair}.{source}"
            check_dataset(text)
            has = (need for need in needs if _has(path, source, target, need))
            parts.append(Part(path, len(MMapIndexedDataset(text)), frozenset(has)))
    return parts


def _has(path: Path, source: str, target: str, need: str) -> bool:
    """Return whether a part has parses of any sentence, or links of any pair."""
    kind, _, language = need.partition(".")
    if kind == LINKS:
        links = Path(data_file_path(_locate_links(path, source, target)))
        return links.exists() and links.stat().st_size > 0
    marks = load_marks(kind, str(path.parent), path.name, source, target, language)
    return marks is not None


def say_what_lacks(parts: Iterable[Part]) -> list[str]:
    """Return a line for each annotation that parts of the training text lack, with sentences.

    A line has the number of sentences that lack the annotation, and the files of their parts.
    """
    parts = [*parts]
    lines = []
    for need in sorted(frozenset[str]().union(*(part.has for part in parts))):
        lacking = [part for part in parts if need not in part.has]
        if lacking:
            count, total = (sum(part.sentences for part in some) for some in (lacking, parts))
            names = ", ".join(str(part.path) for part in lacking)
            lines.append(
                f"{count} of {total} sentences have no {need}, so the losses that read it do not "
                f"train on these sentences: {names}"
            )
    return lines


class Unlinked:
    """Dataset of empty word alignments, for sentence pairs without links.

    Args:
        size: the number of sentence pairs.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Tensor:
        return torch.empty(0, dtype=torch.int)


def load_links(
    folder: str, split: str, source: str, target: str, upsample_primary: int
) -> ConcatDataset | None:
    """Load the word alignments of all parts of a text, of which fairseq loads the first only.

    Args:
        folder: the folder of the binarised corpus.
        split: the name of the text.
        source: the source language.
        target: the target language.
        upsample_primary: how many times the first part is in the dataset.

    Returns:
        A dataset of links for each pair, or None if no part has any.
    """
    parts, linked = [], False
    for path, pair in find_parts(Path(folder), split, source, target, combine=True):
        links = _locate_links(path, source, target)
        if MMapIndexedDataset.exists(links):
            check_dataset(links)
            parts.append(MMapIndexedDataset(links))
            linked = True
        else:
            parts.append(Unlinked(len(MMapIndexedDataset(f"{path}.{pair}.{source}"))))
    return ConcatDataset(parts, [upsample_primary] + [1] * (len(parts) - 1)) if linked else None


def _locate_links(path: Path, source: str, target: str) -> str:
    return f"{path}.{LINKS}.{source}-{target}"
