"""The published model that all trainings of a corpus start from: ``start`` in ``_data.yaml``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.fingerprint import read_words
from syncattn_fairseq.data.pieces import TAG
from syncattn_fairseq.data.preparation import stored_preparations

from .corpus_facts import Corpus
from .start_folder import OPTIONS, is_imported

#: Options of a published model that a training chooses for itself.
OF_TRAININGS = ("dropout", "attention_dropout", "activation_dropout")


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
                f"{corpus.start}: expects the token {preparation.first} before each sentence, "
                "which recipes do not add; take a MarianMT of one language pair"
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
            f"{corpus.start}: expects the target language, such as {tag}, before each sentence, "
            "which recipes do not add; take a model of one target language"
        )
    return replace(corpus, start_options=read_options(folder))
