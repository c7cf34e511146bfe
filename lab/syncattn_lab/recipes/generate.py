"""``python -m syncattn_lab.recipes.generate``: write the built-in corpus with its structure."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from syncattn_fairseq.cli.common import command, new_parser, positive

from ..synthetic.generated_corpus import write_corpus


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Write the training, validation and test split of the built-in corpus."""
    args = make_parser().parse_args(argv)
    # In this order the test set stays the same for any amount of training data.
    sizes = {"test": args.test, "valid": args.valid, "train": args.train}
    write_corpus(args.directory, sizes, args.seed)
    print(f"{args.directory}: train {args.train}, valid {args.valid}, test {args.test} pairs")


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "python -m syncattn_lab.recipes.generate",
        "Write an English-German corpus generated from a grammar: words, dependency heads "
        "and labels, word alignments, phrase structure and CoNLL-U.",
        example="python -m syncattn_lab.recipes.generate words --train 20000 --seed 1",
    )
    parser.add_argument("directory", type=Path, help="folder to write; made if it is missing")
    for split, size in (("train", 20000), ("valid", 500), ("test", 500)):
        parser.add_argument(
            f"--{split}",
            type=positive,
            default=size,
            metavar="N",
            help=f"number of pairs (default: {size})",
        )
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
