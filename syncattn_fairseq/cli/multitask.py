"""``syncattn-multitask``: mix translation and parsing into one corpus, told apart by a tag."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import DataError
from ..base.text import read_lines
from ..data.parses import POLICIES
from ..data.task_mix import TRANSLATE, ParsedSource, mix, tag
from ..data.words import RAW, detect_scheme
from .command_line import CommandLine
from .common import add_command, add_subword_marks, add_texts, command, new_parser, rewrite_texts

MIX = (
    "syncattn-multitask mix --source pieces/train.en --target pieces/train.de \\\n"
    "--trees words/train.trees.en --output mixed/train.en mixed/train.de"
)


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-multitask",
        "Mix a corpus for Multi-Task: a plain Transformer that learns to translate and to parse.",
        example=MIX,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    mixing = add_command(
        commands, "mix", "Write a training corpus, half translations, half parses.", example=MIX
    )
    mixing.add_argument("--source", type=Path, required=True, help="source text in subwords")
    mixing.add_argument("--target", type=Path, required=True, help="target text in subwords")
    parses = mixing.add_mutually_exclusive_group(required=True)
    parses.add_argument(
        "--trees",
        type=Path,
        help="phrase structure trees of the source, one on each line in the brackets of the "
        "Penn Treebank; an empty line or (()) means no parse",
    )
    parses.add_argument(
        "--heads",
        type=Path,
        help="dependency heads of the source in place of --trees: for each word the number "
        "of its head, from 1, or 0 for the root; an empty line means no parse",
    )
    mixing.add_argument(
        "--labels", type=Path, help="with --heads: dependency labels, one for each word"
    )
    mixing.add_argument(
        "--spans",
        type=Path,
        metavar="FILE",
        help="with --heads of raw sentences: character spans of their words, as "
        "syncattn-parse --spans writes them (default: the words of --subword-marks)",
    )
    mixing.add_argument(
        "--text",
        type=Path,
        metavar="FILE",
        help="with --spans: the sentences that the spans count characters of",
    )
    mixing.add_argument(
        "--output",
        type=Path,
        nargs=2,
        required=True,
        metavar=("SOURCE", "TARGET"),
        help="the two texts to write, source and target",
    )
    mixing.add_argument(
        "--words", action="store_true", help="keep the words in the linearised parses"
    )
    mixing.add_argument(
        "--seed",
        type=int,
        default=1,
        help="random seed of the order of lines and of the choice of repeated parses (default: 1)",
    )
    add_subword_marks(mixing)
    mixing.add_argument(
        "--on-bad-parse",
        choices=POLICIES,
        default="stop",
        help="what to do if a parse is not a tree over its sentence's words: stop and write "
        "nothing, or drop the parse (default: stop)",
    )
    mixing.name_files(
        inputs=["source", "target", "trees", "heads", "labels", "spans", "text"], outputs=["output"]
    )
    tagging = add_command(
        commands,
        "tag",
        f"Put {TRANSLATE} before each sentence of a source side, to translate it.",
        example="syncattn-multitask tag --input pieces/test.en --output mixed/test.en",
    )
    add_texts(tagging)
    return parser


def _mix(args: argparse.Namespace) -> None:
    if args.labels and not args.heads:
        raise DataError("--labels needs --heads")
    if args.spans and not (args.heads and args.text):
        raise DataError("--spans needs --heads and --text")
    scheme = args.subword_marks or (RAW if args.spans else None)
    if scheme is None:
        scheme = detect_scheme(read_lines(args.source))
        print(f"subwords of {args.source}: {scheme}")
    parses = (args.trees, args.heads, args.labels)
    places = args.spans, args.text
    source = ParsedSource(args.source, scheme, *parses, args.words, args.on_bad_parse, *places)
    counts = mix(source, args.target, tuple(args.output), args.seed)
    print(f"{args.output[0]} and {args.output[1]}: {counts}")


def _tag(args: argparse.Namespace) -> None:
    rewrite_texts(args, lambda source: (tag(line, TRANSLATE) + "\n" for line in read_lines(source)))


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Mix a corpus, or tag a text."""
    args = make_parser().parse_args(argv)
    {"mix": _mix, "tag": _tag}[args.command](args)


if __name__ == "__main__":
    sys.exit(main())
