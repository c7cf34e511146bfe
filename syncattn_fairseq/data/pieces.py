"""Subwords by sentencepiece, set so that words and their parses stay together.

Nothing is normalised, every word becomes one run of pieces of which the first begins with U+2581,
and the pieces of a word join to exactly that word, also where the model does not know a character.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import sentencepiece

from ..base.errors import DataError
from ..base.files import read_lines

MODEL_TYPES = ("bpe", "unigram", "char")


def read_sentences(path: Path | str | int) -> Iterator[str]:
    """Yield the sentences of a tokenised text, words separated by exactly one space.

    Args:
        path: a text file, or 0 for standard input.

    Raises:
        DataError: naming the line that has U+2581, which marks the first piece of a word.
    """
    name = path or "<stdin>"
    for number, line in enumerate(read_lines(path), 1):
        words = [word for word in line.split(" ") if word]
        for word in words:
            if "▁" in word:
                raise DataError(
                    f"{name}:{number}: the word {word!r} contains U+2581, which marks the start of "
                    "a word in pieces; replace it, for instance with '_'"
                )
        yield " ".join(words)


def learn_pieces(paths: Iterable[Path | str], vocab_size: int, model_type: str = "bpe") -> bytes:
    """Learn a sentencepiece model, the same one from the same text every time.

    Args:
        paths: tokenised texts.
        vocab_size: number of pieces, <unk>, <s> and </s> among them.
        model_type: ``bpe``, ``unigram`` or ``char``.

    Returns:
        The content of the ``.model`` file.

    Raises:
        DataError: for faults in the text, or a vocabulary size that does not suit the text.
    """
    paths = list(paths)

    def sentences() -> Iterator[str]:
        return chain.from_iterable(read_sentences(path) for path in paths)

    # Read once before sentencepiece does: it would wrap the errors of a bad line in its own.
    if not sum(map(len, sentences())):
        raise DataError("no words to learn from: every line of the input is empty")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences(),
            model_writer=model,
            vocab_size=vocab_size,
            model_type=model_type,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            character_coverage=1.0,
            max_sentence_length=2**20,
            num_threads=1,
            minloglevel=3,
        )
    except (RuntimeError, OverflowError, TypeError, ValueError) as error:
        # "INTERNAL: file.cc(1) [condition] What is wrong."
        raise DataError(f"sentencepiece: {str(error).rpartition('] ')[2]}") from None
    return model.getvalue()


def apply_pieces(model: Path, sentences: Iterable[str]) -> Iterator[list[str]]:
    """Yield the pieces of each sentence; see `read_sentences`.

    Args:
        model: a ``.model`` file made by `learn_pieces`.
        sentences: words separated by exactly one space.

    Raises:
        DataError: when the file is no sentencepiece model.
    """
    processor = open_pieces(model)
    for sentence in sentences:
        yield processor.encode(sentence, out_type=str)


def open_pieces(model: Path) -> sentencepiece.SentencePieceProcessor:
    """Load a ``.model`` file.

    Raises:
        DataError: when the file is no sentencepiece model.
    """
    processor = sentencepiece.SentencePieceProcessor()
    try:
        usable = processor.LoadFromSerializedProto(model.read_bytes()) and len(processor) > 0
    except RuntimeError:
        usable = False
    if not usable:
        raise DataError(f"{model}: not a sentencepiece model; learn one with syncattn-bpe learn")
    return processor
