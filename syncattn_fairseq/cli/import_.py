"""``syncattn-import``: make a published translation model a checkpoint to start from."""

import sys
from collections.abc import Sequence
from pathlib import Path

from .command_line import CommandLine
from .common import command, new_parser


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Import a model, and print how its scores compare."""
    args = make_parser().parse_args(argv)
    from .. import plugin  # noqa: F401  (registers the models; imports torch, which is slow)
    from ..imports import import_model

    verdict = import_model(args.folder, args.output, args.source_lang, args.target_lang)
    print(f"{args.output}: {verdict}; train from it with $(cat {args.output}/options.txt)")


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-import",
        "Make a model of Hugging Face Transformers, a MarianMT (OPUS-MT) or an FSMT (wmt19), a "
        "checkpoint that computes the same, to translate with and to start a training from.",
        example="syncattn-import opus-mt-en-de --output imported",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the published model")
    parser.add_argument(
        "--output", required=True, type=Path, metavar="DIR", help="new folder to write"
    )
    parser.add_argument(
        "-s",
        "--source-lang",
        metavar="LANG",
        help="source language (default: that of the folder's files)",
    )
    parser.add_argument(
        "-t",
        "--target-lang",
        metavar="LANG",
        help="target language (default: that of the folder's files)",
    )
    parser.name_files(files=["folder"], outputs=["output"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
