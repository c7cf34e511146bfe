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
    """Export a model, and print how little its scores differ from the checkpoint's."""
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
        help="folder of the binarised corpus of the training; its dictionaries are exported, and "
        "the export has to score its sentences like the checkpoint",
    )
    parser.add_argument(
        "--format",
        required=True,
        choices=["fairseq", "ctranslate2", "transformers", "marian"],
        help="program to export for; transformers stands for an FSMT model of Hugging Face "
        "Transformers, and marian for its MarianMT model, if the training started from one",
    )
    parser.add_argument(
        "--output",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder to write, which must not exist yet",
    )
    parser.add_argument(
        "--quantization",
        metavar="TYPE",
        help="with --format ctranslate2: number type of the stored weights, such as int8 or "
        "float16 (default: float32)",
    )
    add_subwords(
        parser, "default: the one beside the checkpoint, or in --data-bin; copied into --output"
    )
    parser.add_argument(
        "--shortlist",
        type=positive,
        default=0,
        help="with --format ctranslate2: translate with only the N most probable target subwords "
        "of each source subword, counted in the training text; faster, but some translations "
        "change (default: with all target subwords)",
    )
    parser.add_argument(
        "--scores",
        nargs="+",
        metavar=("FILE", "NAME"),
        help="JSON file of syncattn-score, whose scores and significance are written into the "
        "model card, README.md; NAME: the system, if the file has several (default: no scores)",
    )
    parser.add_argument(
        "--licence",
        metavar="NAME",
        help="licence of the model in README.md, as hubs name it, such as cc-by-4.0 (default: "
        "not said)",
    )
    parser.add_argument(
        "--trained-on",
        metavar="TEXT",
        help="name of the training data in README.md, in one line (default: not said)",
    )
    add_user_dir(parser, OF_MODEL)
    parser.name_files(files=["path", "scores"], outputs=["output"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
