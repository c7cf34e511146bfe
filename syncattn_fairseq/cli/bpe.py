"""``syncattn-bpe``: learn subwords and cut words into them, so that parses can follow."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tqdm import tqdm

from ..base.files import replacing
from ..data.pieces import MODEL_TYPES, apply_pieces, learn_pieces, read_sentences
from .common import add_command, add_texts, command, new_parser, positive, rewrite_texts

LEARN = "syncattn-bpe learn --input words/train.en words/train.de --vocab-size 8000 --model bpe"


def _parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "syncattn-bpe",
        "Learn subwords from text, and cut text into them.",
        example=LEARN,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    learn = add_command(
        commands, "learn", "Learn a sentencepiece model from tokenised text.", example=LEARN
    )
    learn.add_argument(
        "--input", nargs="+", type=Path, required=True, metavar="FILE", help="text to learn from"
    )
    learn.add_argument(
        "--vocab-size", type=positive, required=True, metavar="N", help="how many subwords"
    )
    learn.add_argument(
        "--model", type=Path, required=True, metavar="PREFIX", help="writes PREFIX.model"
    )
    learn.add_argument(
        "--type", choices=MODEL_TYPES, default="bpe", help="how they are chosen (default: bpe)"
    )
    apply = add_command(
        commands,
        "apply",
        "Cut tokenised text into subwords.",
        example="syncattn-bpe apply --model bpe.model --input words/test.en --output pieces.en",
    )
    apply.add_argument(
        "--model", type=Path, required=True, metavar="PREFIX.model", help="what learn has written"
    )
    add_texts(apply)
    return parser


def _learn(args: argparse.Namespace) -> None:
    model = learn_pieces(args.input, args.vocab_size, args.type)
    with replacing(args.model.with_name(args.model.name + ".model")) as path:
        path.write_bytes(model)


def _apply(args: argparse.Namespace) -> None:
    rewrite_texts(args, partial(_cut_lines, args.model))


def _cut_lines(model: Path, source: Path | int) -> Iterator[str]:
    sentences = tqdm(read_sentences(source), unit=" sentences", disable=None)
    for pieces in apply_pieces(model, sentences):
        yield " ".join(pieces) + "\n"


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    args = _parser().parse_args(argv)
    {"learn": _learn, "apply": _apply}[args.command](args)


if __name__ == "__main__":
    sys.exit(main())
