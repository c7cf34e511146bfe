"""Split sentences into subwords with sentencepiece, keeping word boundaries for the parses.

A model of raw sentences (`learn_raw_pieces`) reads them as people write them, and its pieces join
to exactly the sentence: only white space becomes plain spaces, and U+2581 becomes ``_``. Characters
that it does not know become bytes.

A model of words (`learn_pieces`) reads tokenised text. Nothing is normalised. Every word becomes a
run of pieces, the first of which begins with U+2581, and they join to exactly that word, even if
the model does not know a character.
"""

import io
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from random import Random
from typing import Any

import sentencepiece

from ..base.errors import DataError
from ..base.files import read_file
from ..base.text import clean_line, read_lines
from .words import MARK, RAW, REPLACEMENT, SYMBOLS, UNKNOWN, find_words, without_mark

#: Characters that become a space when a line is read.
SPACES = [c for c in map(chr, range(1, 0x3001)) if clean_line(f"a{c}b").split() == ["a", "b"]]
#: Characters that are replaced when a line is read, with their replacements.
_READING = {space: " " for space in SPACES if space != " "} | {MARK: REPLACEMENT}


#: Default for the most lines that sentencepiece learns from; it holds each in some 415 bytes.
MAX_LINES = 10_000_000
#: Seed of the random choice among more lines.
SEED = 1


def learn_pieces(
    paths: Iterable[Path | str], vocab_size: int, max_lines: int = MAX_LINES
) -> tuple[bytes, str]:
    """Learn a sentencepiece model from tokenised texts.

    The same text always gives the same model.

    Args:
        paths: the paths of the texts.
        vocab_size: the number of pieces, including <unk>, <s> and </s>.
        max_lines: the most lines to learn from; of longer texts, as many are drawn at random.

    Returns:
        the content of the model's file; and which lines it was learnt from, if not from all.

    Raises:
        DataError: the text is not UTF-8, or too small or large for that size.
    """
    paths = list(paths)

    def sentences() -> Iterator[str]:
        return map(_cuttable, chain.from_iterable(map(read_lines, paths)))

    return _learn(
        sentences,
        vocab_size,
        max_lines,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        character_coverage=1.0,
    )


#: Share of the characters of the training text that must have pieces, counted as often as they
#: occur.
_COVERAGE = 0.9998
#: Stands between words of the training text; U+241F is a picture of a separator, and no word's.
_DELIMITER, _PICTURE = "\u241f", "\u241e"


def learn_raw_pieces(
    texts: Sequence[tuple[Path | str, str | None]], vocab_size: int, max_lines: int = MAX_LINES
) -> tuple[bytes, str]:
    """Learn a sentencepiece model from raw texts.

    No piece has characters of two words of the training text, as their splitters find them. The
    same text always gives the same model.

    Args:
        texts: files with a sentence on each line, and what splits each into words (`.splitters`);
            None: pieces may have characters of several words.
        vocab_size: the number of pieces, including 256 bytes, <unk>, <s> and </s>.
        max_lines: as for `learn_pieces`.

    Returns:
        the same as `learn_pieces`.

    Raises:
        DataError: a text is not UTF-8, or they are too small or large for that size, or what a
            splitter needs is not installed.
    """

    def sentences() -> Iterator[str]:
        for path, splitter in texts:
            for line in read_lines(path):
                yield _delimit(" ".join(without_mark(line).split()), splitter)

    model, chosen = _learn(
        sentences,
        vocab_size,
        max_lines,
        normalization_rule_name="identity",
        byte_fallback=True,
        character_coverage=_COVERAGE,
        pretokenization_delimiter=_DELIMITER,
    )
    return add_line_reading(model), chosen


def _delimit(line: str, splitter: str | None) -> str:
    """Put the delimiter between the words of a sentence; spaces stay before the next word."""
    line = line.replace(_DELIMITER, _PICTURE)
    if splitter is None:
        return line
    begins = [begin for begin, _ in find_words(line, f"{RAW}{splitter}")]
    bounds = [0, *(_before_spaces(line, begin) for begin in begins[1:]), len(line)]
    return _DELIMITER.join(line[begin:end] for begin, end in pairwise(bounds))


def _before_spaces(line: str, place: int) -> int:
    return len(line[:place].rstrip())


def _learn(
    sentences: Callable[[], Iterator[str]], vocab_size: int, max_lines: int, **options: Any
) -> tuple[bytes, str]:
    # Read everything once before sentencepiece does: it would hide our errors of a bad line.
    total = characters = 0
    for sentence in sentences():
        total += 1
        characters += len(sentence)
    if not characters:
        raise DataError("no words to learn from: every line of the input is empty")
    drawn = draw_lines(sentences(), total, max_lines) if total > max_lines else sentences()
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=drawn,
            model_writer=model,
            vocab_size=vocab_size,
            model_type="bpe",
            max_sentence_length=2**20,
            num_threads=1,
            minloglevel=3,
            **options,
        )
    except (RuntimeError, OverflowError, TypeError, ValueError) as error:
        # "INTERNAL: file.cc(1) [condition] What is wrong."
        raise DataError(f"sentencepiece: {str(error).rpartition('] ')[2]}") from None
    chosen = f"learnt from {max_lines:,} of {total:,} lines, drawn with seed {SEED}"
    return model.getvalue(), chosen if total > max_lines else ""


def draw_lines(lines: Iterable[str], total: int, number: int) -> Iterator[str]:
    """Yield ``number`` of ``total`` lines, drawn at random, in their original order."""
    random = Random(SEED)
    for left, line in zip(range(total, 0, -1), lines, strict=True):
        if random.random() * left < number:
            number -= 1
            yield line


#: A text by which a model of raw sentences is recognised (bytes, white space, U+2581, and what
#: other models change), and how such a model reads it.
_PROBE, _READ = f"ﬁ{MARK}\u3000 \t５：ำe\u0301 ", f"{MARK}ﬁ{REPLACEMENT}{MARK}５：ำe\u0301"


def reads_raw_text(processor: sentencepiece.SentencePieceProcessor) -> bool:
    """Return whether a sentencepiece model reads raw sentences, like one of `learn_raw_pieces`."""
    return processor.normalize(_PROBE) == _READ and all(
        processor.piece_to_id(f"<0x{byte:02X}>") != processor.unk_id() for byte in range(256)
    )


def list_pieces(processor: sentencepiece.SentencePieceProcessor) -> list[str]:
    """List the possible pieces in a sentencepiece model's output, without <unk>."""
    pieces = (processor.id_to_piece(number) for number in range(len(processor)))
    return [piece for piece in pieces if piece not in SYMBOLS and piece != UNKNOWN]


#: Tag of the target language, such as ``>>de<<``, which Marian's multilingual models read first.
TAG = re.compile(">>[^<>\\s]+<<")


def apply_pieces(
    processor: sentencepiece.SentencePieceProcessor, sentence: str, known: Container[str] = ()
) -> list[str]:
    """Split a sentence into pieces with sentencepiece; U+2581 in the sentence becomes ``_``.

    Args:
        processor: the sentencepiece model.
        sentence: a line of text.
        known: the symbols in a model's dictionary. One that names a language, such as ``>>de<<``,
            stays whole at the beginning of a sentence, where Marian's models read it.

    Raises:
        DataError: a piece has a space or line end.
    """
    sentence = _cuttable(sentence)
    first, _, rest = sentence.partition(" ")
    tag = [first] if TAG.fullmatch(first) and first in known else []
    pieces: list[str] = processor.encode(rest if tag else sentence, out_type=str)
    if any(character in piece for piece in pieces for character in " \n\r"):
        raise DataError(
            "this sentencepiece model has subwords with spaces or line ends in them; learn "
            "another model with syncattn-bpe learn"
        )
    return tag + pieces


def read_tags(dictionary: Path) -> frozenset[str]:
    """Return the language tags in a fairseq dictionary, such as ``>>de<<``."""
    symbols = (line.partition(" ")[0] for line in read_lines(dictionary))
    return frozenset(filter(TAG.fullmatch, symbols))


def normalise_sentence(processor: sentencepiece.SentencePieceProcessor, sentence: str) -> str:
    """Return a sentence as its sentencepiece pieces spell it, with single plain spaces.

    A published model may replace characters, such as ``…`` by three points, so that parses must be
    of this sentence.
    """
    text: str = processor.normalize(_cuttable(clean_line(sentence)))
    return " ".join(text.replace(MARK, " ").split())


def open_pieces(model: Path) -> sentencepiece.SentencePieceProcessor:
    """Load a sentencepiece model from its file; raise `DataError` if the file is no such model."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        usable = processor.LoadFromSerializedProto(read_file(model)) and len(processor) > 0
    except RuntimeError:
        usable = False
    if not usable:
        raise DataError(f"{model}: not a sentencepiece model; learn one with syncattn-bpe learn")
    return processor


def add_line_reading(model: bytes) -> bytes:
    """Return a sentencepiece model with this package's rules for spaces, for other programs.

    White space of all kinds separates words, however much there is, at the ends, too, and U+2581
    is no space. `DataError`: this sentencepiece cannot.
    """
    try:
        normalizer = sentencepiece.SentencePieceNormalizer(model_proto=model)
        rules = dict(normalizer.decompile())
    except RuntimeError:  # there are none
        rules = {}
    except AttributeError:
        raise DataError("this needs sentencepiece 0.2.3 or later") from None
    rules |= _READING
    normalizer = sentencepiece.SentencePieceNormalizer(
        norm_map=[*rules.items()], remove_extra_whitespaces=True
    )
    # Messages of Protocol Buffers are merged by writing one after the other.
    return model + bytes(normalizer.serialized_model_proto())


def _cuttable(line: str) -> str:
    """Return words in sentencepiece's form: separated by single spaces, and without U+2581."""
    return " ".join(word for word in without_mark(line).split(" ") if word)
