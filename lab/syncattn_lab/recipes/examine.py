"""``python -m syncattn_lab.recipes.examine``: find faults in a corpus's text."""

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import command, new_parser
from syncattn_fairseq.data.doctor import examine, open_files
from syncattn_fairseq.data.parses import SPLITS

from ..evaluation.findings_file import store_findings


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Examine the texts of all splits; print and store the faults that are found."""
    args = make_parser().parse_args(argv)
    source, target = args.languages
    texts = [
        open_files(split, args.texts / f"{split}.{source}", args.texts / f"{split}.{target}")
        for split in SPLITS
    ]
    findings = examine(texts, (source, target))
    store_findings(args.output, findings)
    print(*(f"{finding}\n" for finding in findings), sep="", end="")
    print(f"{args.output}: what is wrong with the text: {len(findings) or 'nothing'}")


def _texts(args: argparse.Namespace) -> list[Path]:
    return [args.texts / f"{split}.{x}" for split, x in product(SPLITS, args.languages)]


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "python -m syncattn_lab.recipes.examine",
        "Find test and validation sentences in the training text, repeated and untranslated pairs, "
        "swapped sides, and odd lines.",
        example="python -m syncattn_lab.recipes.examine words --languages en de \\\n"
        "--output found.json",
    )
    parser.add_argument(
        "texts",
        type=Path,
        metavar="DIR",
        help="folder of the texts: train.SRC, train.TGT, valid.SRC and so on",
    )
    parser.add_argument(
        "--languages",
        nargs=2,
        required=True,
        metavar=("SRC", "TGT"),
        help="the two languages, which are the suffixes of the files",
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSON file to write with all findings",
    )
    parser.name_files(inputs=[_texts], outputs=["output"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
