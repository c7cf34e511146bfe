"""The folder of the published model that all trainings of a corpus start from, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError

#: The files of ``syncattn-import`` that a recipe reads.
CHECKPOINT, OPTIONS, RECORD = "model.pt", "options.txt", "preparation.json"
#: The file that every published model has, and those of Marian models for their subwords.
CONFIG, SUBWORDS = "config.json", ("source.spm", "target.spm")


def check_facts(facts: Mapping[str, Any], path: Path) -> None:
    """Check the facts about a corpus whose trainings start from a published model.

    Args:
        facts: the keys of ``_data.yaml``.
        path: the path of that file.

    Raises:
        DataError: the folder has no such model, its subwords are not pieces of sentences, or a key
            sets what the model decides.
    """
    folder = facts["start"]
    if not isinstance(folder, str):
        raise DataError(f"{path}: start: {folder!r}: give the folder of a model")
    for name in ("subwords", "generated", "gold_alignments"):
        if facts.get(name):
            raise DataError(
                f"{path}: {name}: the model under start determines this key; leave the key out"
            )
    check_folder(folder, path)


def check_folder(folder: str | Path, path: Path) -> None:
    """Raise `DataError` unless a folder has a model to start from, with SentencePiece subwords.

    Args:
        folder: the folder of a published model, or of ``syncattn-import``.
        path: the file that names the folder.

    Raises:
        DataError: a file of the model is missing.
    """
    files = [RECORD, OPTIONS] if is_imported(folder) else [CONFIG, *SUBWORDS]
    for name in files:
        if not Path(folder, name).is_file():
            raise DataError(
                f"{Path(folder, name)}: no such file; {path}: start: give a folder of a "
                "published MarianMT model, or one that syncattn-import has written"
            )


def is_imported(folder: str | Path) -> bool:
    """Tell whether a folder was written by ``syncattn-import``."""
    return Path(folder, CHECKPOINT).is_file() and not Path(folder, CONFIG).exists()
