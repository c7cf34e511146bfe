"""The doctor's examination of a binarised corpus, whose sentences are read back as words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fairseq.data.indexed_dataset import MMapIndexedDataset

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.doctor import Finding, Text, examine
from syncattn_fairseq.data.labels import load_dictionary
from syncattn_fairseq.data.mmap_blocks import check_dataset
from syncattn_fairseq.data.preparation import stored_schemes
from syncattn_fairseq.data.words import join_text

#: A binarised text: its split, its languages, and its own language.
_DATASET = re.compile(r"(train|valid|test)(\d*)\.([^.]+)-([^.]+)\.([^.]+)\.idx")


def examine_data(folder: Path) -> list[Finding]:
    """Find faults in the texts of a binarised corpus, with the checks that recipes make.

    Args:
        folder: what ``syncattn-preprocess`` wrote.

    Raises:
        DataError: there is no binarised text of both sides, or it is damaged.
    """
    found = [match for path in sorted(folder.iterdir()) if (match := _DATASET.fullmatch(path.name))]
    names = {match[0] for match in found}
    texts, languages = [], ("", "")
    for match in found:
        split, number, *languages_here, language = match.groups()
        source, target = languages_here
        prefix = f"{split}{number}.{source}-{target}"
        if language == source and f"{prefix}.{target}.idx" in names:
            languages = source, target
            sides = tuple(f"{folder}/{prefix}.{each}" for each in languages)
            texts.append(Text(split, (sides[0], sides[1]), _read_pairs(folder, sides, languages)))
    if not texts:
        raise DataError(f"{folder}: no binarised text of both sides; see syncattn-preprocess")
    return examine(texts, languages)


def _read_pairs(
    folder: Path, paths: tuple[str, ...], languages: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    schemes = stored_schemes(folder)
    sides = []
    for path, language in zip(paths, languages, strict=True):
        check_dataset(path)
        words = load_dictionary(folder / f"dict.{language}.txt")
        sides.append((MMapIndexedDataset(path), words, schemes.get(language, "none")))
    (first, *_), (second, *_) = sides
    if len(first) != len(second):
        raise DataError(f"{paths[1]}: {len(second)} sentences, but {len(first)} in {paths[0]}")
    for number in range(len(first)):
        joined = []
        for text, words, scheme in sides:
            tokens = text[number].tolist()[:-1]  # without the end of sentence
            joined.append(join_text([words[token] for token in tokens], scheme))
        yield joined[0], joined[1]
