"""``syncattn-bpe``: learn subwords and cut words into them, so that parses can follow."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from syncattn_fairseq.cli.common import command
from syncattn_fairseq.data.errors import DataError
from syncattn_fairseq.data.files import replacing
from syncattn_fairseq.data.pieces import MODEL_TYPES, apply_pieces, learn_pieces, read_sentences


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="syncattn-bpe", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    learn = commands.add_parser("learn", help="learn a sentencepiece model from tokenised text")
    learn.add_argument("--input", nargs="+", type=Path, required=True, metavar="FILE")
    learn.add_argument("--vocab-size", type=int, required=True, metavar="N")
    learn.add_argument(
        "--model", type=Path, required=True, metavar="PREFIX", help="writes PREFIX.model"
    )
    learn.add_argument("--type", choices=MODEL_TYPES, default="bpe")
    apply = commands.add_parser("apply", help="cut tokenised text into pieces")
    apply.add_argument("--model", type=Path, required=True, metavar="PREFIX.model")
    apply.add_argument(
        "--input", nargs="+", type=Path, metavar="FILE", help="default: standard input"
    )
    apply.add_argument(
        "--output",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="one for each input; default: standard output",
    )
    return parser


def _learn(args: argparse.Namespace) -> None:
    model = learn_pieces(args.input, args.vocab_size, args.type)
    with replacing(args.model.with_name(args.model.name + ".model")) as path:
        path.write_bytes(model)


def _apply(args: argparse.Namespace) -> None:
    if args.output is None:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        for source in args.input or [0]:
            sys.stdout.writelines(_pieces(args.model, source))
        return
    inputs = args.input or [0]
    if len(inputs) != len(args.output):
        raise DataError(f"{len(inputs)} inputs, but {len(args.output)} outputs; give one for each")
    for source, output in zip(inputs, args.output, strict=True):
        with replacing(output) as path, path.open("w", encoding="utf-8") as file:
            file.writelines(_pieces(args.model, source))


def _pieces(model: Path, source: Path | int) -> Iterator[str]:
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
