"""``syncattn-export``: write a trained model as a plain Transformer, for other programs."""

import sys
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import DataError
from .command_line import CommandLine
from .common import (
    OF_MODEL,
    add_subwords,
    add_user_dir,
    command,
    new_parser,
    positive,
    read_subwords,
)


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Export a model, and print how its scores compare."""
    args = make_parser().parse_args(argv)
    from ..export import export
    from ..export.card import read_scores

    if args.scores and len(args.scores) > 2:
        raise DataError(
            "--scores: give a file, and the name of a system in this file if the file has several"
        )

    verdict = export(
        args.path,
        args.data_bin,
        args.format,
        args.output,
        args.quantization,
        read_subwords(args),
        args.user_dir,
        args.shortlist,
        read_scores(*args.scores) if args.scores else None,
        args.licence,
        args.trained_on,
    )
    print(f"{args.output}: {verdict}; its README.md says how to use it")


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-export",
        "Write a trained model as a plain Transformer that translates the same, for "
        "fairseq without this package, CTranslate2 or Hugging Face Transformers.",
        example="syncattn-export --path checkpoints/checkpoint_best.pt --data-bin data-bin \\\n"
        "--subwords bpe.model --format ctranslate2 --output served",
    )
    parser.add_argument("--path", required=True, metavar="CHECKPOINT", help="checkpoint to export")
    parser.add_argument(
        "--data-bin",
        required=True,
        metavar="DIR",
        help="binarised corpus of the training, with the dictionaries and with sentences "
        "whose scores are compared",
    )
    parser.add_argument(
        "--format",
        required=True,
        choices=["fairseq", "ctranslate2", "transformers", "marian"],
        help="program to export for; transformers writes an FSMT model of Hugging Face "
        "Transformers, and marian a MarianMT model, if the training started from one",
    )
    parser.add_argument(
        "--output", required=True, type=Path, metavar="DIR", help="new folder to write"
    )
    parser.add_argument(
        "--quantization",
        metavar="TYPE",
        help="with ctranslate2: type of the weights, such as int8 or float16 (default: float32)",
    )
    add_subwords(parser, "copied into the folder")
    parser.add_argument(
        "--shortlist",
        type=positive,
        default=0,
        help="with ctranslate2: translate with only the N most probable target subwords of "
        "each source subword, counted in the training text; faster, but some "
        "translations change",
    )
    parser.add_argument(
        "--scores",
        nargs="+",
        metavar=("FILE", "NAME"),
        help="JSON of syncattn-score, and the system's name in it if there are several; "
        "README.md, the model card, gets the scores and their significance",
    )
    parser.add_argument(
        "--licence",
        metavar="NAME",
        help="licence of the model for README.md, as hubs name it, such as cc-by-4.0",
    )
    parser.add_argument(
        "--trained-on",
        metavar="TEXT",
        help="name of the training data for README.md",
    )
    add_user_dir(parser, OF_MODEL)
    parser.name_files(files=["path", "scores"], outputs=["output"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
