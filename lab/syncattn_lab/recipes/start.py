"""The published model that all trainings of a corpus start from: ``start`` in ``_data.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.fingerprint import read_words
from syncattn_fairseq.data.pieces import TAG
from syncattn_fairseq.data.preparation import stored_preparations

if TYPE_CHECKING:
    from .corpus_facts import Corpus

#: The files of ``syncattn-import`` that a recipe reads.
CHECKPOINT, OPTIONS, RECORD = "model.pt", "options.txt", "preparation.json"
#: The file that every published model has, and those of Marian models for their subwords.
CONFIG, SUBWORDS = "config.json", ("source.spm", "target.spm")
#: Options of a published model that a training chooses for itself.
OF_TRAININGS = ("dropout", "attention_dropout", "activation_dropout")


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


def locate_start(corpus: Corpus) -> Path:
    """Return the folder of the imported model, relative to the recipe's folder."""
    assert corpus.start is not None
    return (
        Path(corpus.start) if is_imported(corpus.start) else Path("corpora", corpus.name, "start")
    )


def with_options(corpus: Corpus, work: Path) -> Corpus:
    """Return the corpus with ``start_options`` read from the model that trainings start from.

    Args:
        corpus: the corpus.
        work: the folder of the recipe.

    Raises:
        DataError: the model is not imported yet, or not a model of these two languages.
    """
    from syncattn_fairseq.imports import read_options  # imports fairseq

    if corpus.start is None:
        return corpus
    folder = work / locate_start(corpus)
    if not (folder / OPTIONS).exists():
        raise DataError(
            f"{corpus.start}: the model is not imported yet; import it with: syncattn-recipe "
            f"{corpus.name} --to import"
        )
    for preparation in stored_preparations(folder).values():
        if preparation.first:
            raise DataError(
                f"{corpus.start}: reads {preparation.first} first, which recipes do not write; "
                "take a MarianMT of two languages"
            )
    for language in corpus.languages:
        if not (folder / f"dict.{language}.txt").is_file():
            raise DataError(
                f"{folder / f'dict.{language}.txt'}: no such file; import the model with "
                f"--source-lang {corpus.source} --target-lang {corpus.target}"
            )
    words = read_words(folder / f"dict.{corpus.source}.txt")
    if tag := next(filter(TAG.fullmatch, words), None):
        raise DataError(
            f"{corpus.start}: reads the target language first, such as {tag}, which recipes do not "
            "write; take a model of one target language"
        )
    return replace(corpus, start_options=read_options(folder))
