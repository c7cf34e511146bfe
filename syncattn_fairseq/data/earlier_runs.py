"""Check, keep or remove the files of earlier runs in the folder of a binarised corpus."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fairseq.data.indexed_dataset import MMapIndexedDataset

from ..base.errors import DataError
from .binarise import KINDS
from .controls import CONTROLS
from .fingerprint import (
    Fingerprint,
    describe_datasets,
    describe_meaning,
    describe_preparations,
    describe_subwords,
    hash_words,
    list_differences,
    read_fingerprint,
    read_stored,
    read_words,
)
from .labels import load_dictionary
from .mmap_blocks import SUFFIX, check_dataset
from .preparation import SCHEMES_NAME, Preparation, list_record
from .segmenters import SubwordModel

#: Number of sentences in a sample of a corpus, and the splits to draw it from: the first that
#: exists. The training text comes last, since it may be split into subwords at random.
SAMPLE = 200
SAMPLED = ("valid", "test", "train")
#: Endings of the names of binarised files.
_SUFFIXES = (".idx", ".bin", SUFFIX)


def check_earlier(
    folder: Path,
    languages: tuple[str, str],
    subwords: Sequence[SubwordModel] | None = None,
    preparations: Mapping[str, Preparation] | None = None,
) -> None:
    """Check that an addition to a binarised corpus was preprocessed in the way of the corpus.

    Args:
        folder: the folder of the binarised corpus.
        languages: the source and the target language.
        subwords: the subword models of the added text; None: unknown, and not checked.
        preparations: how the added text was prepared; None: unknown, and not checked.

    Raises:
        DataError: a file of the corpus was exchanged, or the added text was prepared differently.
    """
    here = read_fingerprint([folder], languages).meaning
    added = describe_preparations(preparations or {}, languages)
    for language, model in zip(languages, subwords or (), strict=False):
        added |= describe_subwords(language, model)
    for part in list_differences(here, added):
        raise DataError(
            f"{folder / part}: differs from what this command was given for the added text; give "
            "the same as for the first text, or choose another --destdir"
        )


def drop_same_dictionaries(
    folder: Path, destination: Path, languages: tuple[str, str], written: Iterable[Path]
) -> None:
    """Remove each new dictionary that equals the one already in the destination folder.

    Args:
        folder: the folder with the new files of the run.
        destination: the folder that these files will move to.
        languages: the source and the target language.
        written: the texts of the run in their destination, without suffix.

    Raises:
        DataError: a dictionary differs from the one with which texts that stay were binarised.
    """
    stored = read_stored(destination)
    names = {path.name for path in written}
    others = [name for name in _list_texts(destination, languages) if name not in names]
    for path in folder.glob("dict.*.txt"):
        old = destination / path.name
        before = stored.meaning.get(path.name) if stored else None
        if old.is_file():
            before = hash_words(read_words(old))
        if before == hash_words(read_words(path)):
            if old.is_file():
                path.unlink()
        elif others and not path.name.startswith("dict.labels."):
            raise DataError(
                f"{destination / others[0]}.bin: was binarised with another dictionary than the "
                f"present {path.name}; remove {destination / others[0]}.bin, or choose another "
                "--destdir"
            )


def _list_texts(folder: Path, languages: tuple[str, str]) -> list[str]:
    one, other = map(re.escape, languages)
    pattern = rf"\w+\.({one}-{other}\.({one}|{other})|{other}-{one}\.({one}|{other}))\.bin"
    names = [path.name for path in sorted(folder.glob("*.bin"))]
    return [name.removesuffix(".bin") for name in names if re.fullmatch(pattern, name)]


def list_earlier(
    folder: Path,
    destination: Path,
    languages: tuple[str, str],
    written: Iterable[Path],
    anew: bool,
) -> list[Path]:
    """List stale files of earlier runs, such as the heads of a text that this run binarises anew.

    Args:
        folder, destination, languages, written: as for `drop_same_dictionaries`.
        anew: whether the training text is among the texts. Then the stored record of preparation,
            subword models and label dictionaries are of an earlier run, too.

    Returns:
        Heads, labels, controls and links of the texts, and the record; perhaps not all of them
        exist.
    """
    names = []
    for text in written:
        split, _, rest = text.name.partition(".")
        pair = rest.partition(".")[0]
        values = [f"{split}.{kind}.{rest}" for kind in (*KINDS, *CONTROLS, "another")]
        values.append(f"{split}.align.{pair}")
        names += [f"{name}{suffix}" for name in values for suffix in _SUFFIXES]
    if anew:
        names += [name for name in list_record(languages) if name != SCHEMES_NAME]
        names += [f"dict.labels.{language}.txt" for language in languages]
    made = {path.name for path in folder.iterdir()}
    return [destination / name for name in dict.fromkeys(names) if name not in made]


def store_fingerprint(
    folder: Path, destination: Path, languages: tuple[str, str], gone: Iterable[Path]
) -> None:
    """Write the fingerprint (hashes) of a corpus, as changed by this run, into the run's folder.

    Args:
        folder, destination, languages: as for `drop_same_dictionaries`.
        gone: files in the destination that will be removed.
    """
    stored = read_stored(destination)
    known = stored.provenance[0] if stored and stored.provenance else {}
    folders, without = [folder, destination], [path.name for path in gone]
    Fingerprint(
        describe_meaning(folders, languages, without),
        [describe_datasets(folders, languages, known, complete=True, without=without)],
    ).write(folder)


def read_rows(folder: Path, languages: tuple[str, str], language: str) -> list[list[str]]:
    """Return the subwords of a sample of a binarised corpus, by sentence; [] without a text.

    Args:
        folder: the folder of the binarised corpus.
        languages: the source and the target language.
        language: the language of the sentences to read.
    """
    dictionary = folder / f"dict.{language}.txt"
    for split in SAMPLED:
        path = str(folder / f"{split}.{'-'.join(languages)}.{language}")
        if dictionary.is_file() and MMapIndexedDataset.exists(path):
            check_dataset(path)
            words, text = load_dictionary(dictionary), MMapIndexedDataset(path)
            return [
                [words[token] for token in text[number][:-1]]
                for number in range(min(len(text), SAMPLE))
            ]
    return []
