"""Check that the recorded preparation and the subword model of a text fit the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..base.errors import DataError
from .moses import load_sacremoses
from .pieces import TAG
from .preparation import Preparation
from .segmenters import Codes, Pieces, RawPieces, Segmenter, SubwordModel
from .words import is_raw, join_subwords, join_text


def check_record(
    model: SubwordModel | None,
    preparation: Preparation | None,
    rows: Sequence[Sequence[str]],
    scheme: str,
    where: Path | str,
) -> None:
    """Check that a subword model and stored tokenizer settings fit a text.

    Args:
        model: the subword model; None: unknown, and not checked.
        preparation: how the text became words; None: unknown, and not checked.
        rows: the subwords of sentences; those with unknown subwords are left out.
        scheme: how subwords are marked.
        where: the name of the text in messages.

    Raises:
        DataError: the model or the preparation does not fit most of the sentences.
    """
    if model is not None:
        segmenter = model.open()
        if isinstance(segmenter, Pieces) and is_raw(scheme):
            segmenter = RawPieces(segmenter.processor)
        of_sentences = is_raw(segmenter.scheme) and is_raw(scheme)  # however their words are split
        if segmenter.scheme != scheme and not of_sentences:
            raise DataError(
                f"{model.path}: marks subwords as {segmenter.scheme}, but {where} marks them as "
                f"{scheme}; give the model that split the text into subwords"
            )
        check_subwords(model.path, segmenter, rows, where)
    if preparation is not None:
        check_preparation(preparation, rows, scheme, where)


def check_subwords(
    path: Path | str, segmenter: Segmenter, rows: Sequence[Sequence[str]], where: Path | str
) -> None:
    """Check that a subword model splits a text's sentences into the text's own subwords.

    A few may differ, such as those with white space inside words.

    Args:
        path: the path of the subword model, for messages.
        segmenter: the subword model.
        rows: the subwords of sentences; those with unknown subwords are left out.
        where: the name of the text in messages.

    Raises:
        DataError: the model splits most sentences in another way.
    """
    rows = [row[1:] if row and TAG.fullmatch(row[0]) else row for row in rows]
    known = [[*row] for row in rows if row and "<unk>" not in row]
    raw = is_raw(segmenter.scheme)
    texts = (
        [join_text(row, segmenter.scheme)] if raw else join_subwords(row, segmenter.scheme)
        for row in known
    )
    same = sum(segmenter.segment(text) == row for text, row in zip(texts, known, strict=True))
    if 2 * same < len(known):
        raise DataError(
            f"{path}: splits {len(known) - same} of {len(known)} sentences of {where} "
            "differently; give the subword model that the text was split with"
            + (", and its --vocabulary if it had one" if isinstance(segmenter, Codes) else "")
        )


def check_languages(
    preparations: Mapping[str, Preparation], languages: tuple[str, str], where: Path | str
) -> None:
    """Check that the tokenizer settings of source and target are not swapped.

    Args:
        preparations: how the text of each language was prepared.
        languages: the source and the target language.
        where: the file or option that says so, for messages.

    Raises:
        DataError: each language was prepared as the other one.
    """
    one, other = (language.replace("_", "-").partition("-")[0] for language in languages)
    named = [
        preparations[language].language.replace("_", "-").partition("-")[0]
        for language in languages
        if language in preparations
    ]
    if one != other and named == [other, one]:
        raise DataError(
            f"{where}: says that {languages[0]} was prepared as {named[0]}, and {languages[1]} "
            f"as {named[1]}, so the languages are swapped; name the source language first"
        )


def check_preparation(
    preparation: Preparation, rows: Sequence[Sequence[str]], scheme: str, where: Path | str
) -> None:
    """Check that detokenising and tokenising a text, by its stored settings, restores its words.

    Args:
        preparation: how the text is said to be prepared; only Moses's way is checked.
        rows: the subwords of sentences; those with unknown subwords are left out.
        scheme: how subwords are marked.
        where: the name of the text in messages.

    Raises:
        DataError: most sentences have other words.
    """
    if preparation.tokenizer != "moses":
        return
    try:
        load_sacremoses()
    except DataError:  # it is not installed, and not needed until sentences are translated
        return
    lines = [" ".join(join_subwords([*row], scheme)) for row in rows if row and "<unk>" not in row]
    again = preparation.tokenise(preparation.detokenise(lines))
    if preparation.case == "true":  # of the first word, a model knows it
        lines, again = [[line.lower() for line in each] for each in (lines, again)]
    others = [pair for pair in zip(lines, again, strict=True) if pair[0] != pair[1]]
    if 2 * len(others) > len(lines):
        line, words = others[0]
        raise DataError(
            f"{where}: {len(others)} of {len(lines)} sentences have other words than --words-by "
            f"makes, the first {words[:60]!r} in place of {line[:60]!r}; give to --words-by the "
            "command that split the text"
        )
