"""``syncattn-bpe``: learn subwords, and split parsed text without invalidating the parses."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from ..base.errors import DataError
from ..base.files import replacing
from ..base.text import read_lines
from ..base.worker_pool import map_in_order
from ..data.pieces import (
    MAX_LINES,
    apply_pieces,
    learn_pieces,
    learn_raw_pieces,
    normalise_sentence,
    open_pieces,
    read_tags,
)
from ..data.splitters import find_splitter
from ..data.words import MARK, REPLACEMENT
from .command_line import CommandLine
from .common import (
    add_command,
    add_texts,
    announce,
    command,
    new_parser,
    positive,
    progress,
    rewrite_texts,
)

LEARN = (
    "syncattn-bpe learn --raw en de --input raw/train.en raw/train.de \\\n"
    "--vocab-size 8000 --model bpe"
)


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-bpe", "Learn subwords from text, and split text into them.", example=LEARN
    )
    commands = parser.add_subparsers(dest="command", required=True)
    learn = add_command(commands, "learn", "Learn a sentencepiece model from text.", example=LEARN)
    learn.add_argument(
        "--input",
        nargs="+",
        type=Path,
        required=True,
        help="texts to learn from, one sentence on each line",
    )
    learn.add_argument(
        "--raw",
        nargs="+",
        metavar="LANGUAGE",
        help="language of each text in --input, in the same order; the sentences are then read "
        "as people write them, and no subword has characters of two words (default: the texts "
        "are in words already, separated by spaces)",
    )
    learn.add_argument(
        "--vocab-size", type=positive, required=True, help="number of subwords in the model"
    )
    learn.add_argument(
        "--model",
        type=Path,
        required=True,
        metavar="PREFIX",
        help="path of the new model without its ending; PREFIX.model is written",
    )
    learn.add_argument(
        "--max-lines",
        type=positive,
        default=MAX_LINES,
        help="most lines to learn from; of longer texts, N lines are drawn with a fixed seed; a "
        f"line takes about 415 bytes of memory (default: {MAX_LINES:,})",
    )
    learn.name_files(inputs=["input"], outputs=[lambda args: [_name_model(args.model)]])
    apply = add_command(
        commands,
        "apply",
        "Split text into subwords.",
        example="syncattn-bpe apply --model bpe.model --input raw/test.en --output pieces.en",
    )
    apply.add_argument(
        "--model",
        type=Path,
        required=True,
        metavar="PREFIX.model",
        help="subword model that syncattn-bpe learn wrote",
    )
    apply.add_argument(
        "--workers",
        type=positive,
        default=1,
        help="number of processes that split the text (default: 1)",
    )
    apply.add_argument(
        "--dictionary",
        type=Path,
        metavar="dict.LANGUAGE.txt",
        help="dictionary of an imported model of several languages; its language tokens, such as "
        ">>de<<, stay whole at the beginning of a sentence (default: all text is split)",
    )
    add_texts(apply)
    apply.name_files(files=["model", "dictionary"])
    normalise = add_command(
        commands,
        "normalise",
        "Write sentences as a published model of raw sentences reads them. It may replace "
        "characters, so parse these sentences.",
        example="syncattn-bpe normalise --model imported/subwords.en --input raw/test.en "
        "--output words/test.en",
    )
    normalise.add_argument(
        "--model",
        type=Path,
        required=True,
        metavar="FILE",
        help="subword model of the published model that will read the sentences",
    )
    add_texts(normalise)
    normalise.name_files(files=["model"])
    return parser


def _name_model(prefix: Path) -> Path:
    if prefix.name in ("", ".."):
        raise DataError(
            f"{prefix}: is a folder; give the beginning of a file's name in this folder, such as "
            "bpe"
        )
    return prefix.with_name(prefix.name + ".model")


def _learn(args: argparse.Namespace) -> None:
    output = _name_model(args.model)
    if args.raw and len(args.raw) != len(args.input):
        raise DataError(
            f"--raw: {len(args.raw)} languages for {len(args.input)} texts; give one language "
            "for each text"
        )
    with replacing(output) as path:
        if args.raw:
            texts = [*zip(args.input, map(_find_splitter, args.raw), strict=True)]
            model, chosen = learn_raw_pieces(texts, args.vocab_size, args.max_lines)
        else:
            model, chosen = learn_pieces(args.input, args.vocab_size, args.max_lines)
        path.write_bytes(model)
        size = len(open_pieces(path))
    announce(output, f"{size} subwords" + (f", {chosen}" if chosen else ""))


def _find_splitter(language: str) -> str | None:
    """Return the splitter of a language's words; None, with a note, if it is not installed."""
    splitter, lack = find_splitter(language)
    if lack:
        print(f"note: {lack}", file=sys.stderr)
    return None if lack else splitter


def _apply(args: argparse.Namespace) -> None:
    def lines(source: Path | int) -> Iterator[str]:
        tags = read_tags(args.dictionary) if args.dictionary else frozenset[str]()
        cut = partial(_cut, open_pieces(args.model), tags)
        marked = 0

        def read() -> Iterator[str]:
            nonlocal marked
            for line in read_lines(source):
                marked += MARK in line
                yield line

        cuts = map_in_order(cut, read(), args.workers)
        yield from progress(cuts)
        if marked:
            name = source or "<stdin>"
            note = (
                f"{name}: {marked} lines contain the character U+2581, which subwords show as "
                f"{REPLACEMENT}"
            )
            print(note, file=sys.stderr)

    rewrite_texts(args, lines)


def _normalise(args: argparse.Namespace) -> None:
    processor = open_pieces(args.model)

    def lines(source: Path | int) -> Iterator[str]:
        for line in read_lines(source):
            yield f"{normalise_sentence(processor, line)}\n"

    rewrite_texts(args, lines)


def _cut(processor: SentencePieceProcessor, tags: frozenset[str], sentence: str) -> str:
    return " ".join(apply_pieces(processor, sentence, tags)) + "\n"


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Learn a subword model, split text into subwords, or normalise text for a model."""
    args = make_parser().parse_args(argv)
    {"learn": _learn, "apply": _apply, "normalise": _normalise}[args.command](args)


if __name__ == "__main__":
    sys.exit(main())
