"""``syncattn-preprocess``: ``fairseq-preprocess`` with heads and labels in the same call."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..data.parses import MIN_PARSED, POLICIES
from ..data.words import SCHEMES
from .common import command, fraction, new_parser

SPLITS = ("train", "valid", "test")

DESCRIPTION = """\
Binarise texts as fairseq-preprocess does, and their heads and labels beside them. All options of
fairseq-preprocess are options here too (fairseq-preprocess --help): -s, -t, --trainpref,
--validpref, --testpref, --destdir, --joined-dictionary, --srcdict, --workers and so on.
"""

EXAMPLE = """\
syncattn-preprocess -s en -t de --joined-dictionary --destdir data-bin \\
--trainpref pieces/train --trainheads words/train \\
--validpref pieces/valid --validheads words/valid --testpref pieces/test"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add our own options to fairseq's."""
    group = parser.add_argument_group("Parses")
    for split in SPLITS:
        several = "" if split == "train" else ", comma separated if there are several,"
        group.add_argument(
            f"--{split}heads",
            metavar="FP",
            help=f"prefix{several} of the files FP.heads.LANG with the heads of the words and "
            f"FP.labels.LANG with their labels (default: the value of --{split}pref); a text "
            "FP.LANG beside them is compared with the text in subwords",
        )
    for side, language in (("src", "source"), ("tgt", "target")):
        group.add_argument(
            f"--{side}labeldict",
            metavar="FP",
            help=f"reuse given dictionary of {language} labels (default: make it from those of "
            "the training text)",
        )
    group.add_argument(
        "--subwords",
        choices=("auto", *SCHEMES),
        default="auto",
        help="how subwords are marked: a final @@, an initial U+2581, or words are whole "
        "(default: as in what is in --destdir already, else by what the text contains)",
    )
    group.add_argument(
        "--on-bad-parse",
        choices=POLICIES,
        default="stop",
        help="what heads that are not a tree over their sentence's words, or labels that are not "
        "one for each, do: stop before anything is written, or be dropped and the sentence kept "
        "without (default: stop)",
    )
    group.add_argument(
        "--min-parsed",
        type=fraction,
        default=MIN_PARSED,
        metavar="SHARE",
        help="stop where a smaller share of the sentences has heads, or labels, that fit them "
        f"(default: {MIN_PARSED})",
    )
    group.add_argument(
        "--add",
        nargs="+",
        metavar="KIND.LANG",
        help="only these heads or labels, as heads.en or labels.en, for texts that --destdir has "
        "binarised already; everything else there stays as it is",
    )


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    words = list(sys.argv[1:] if argv is None else argv)
    if {"-h", "--help", "--version"} & set(words):  # without the seconds that fairseq takes
        parser = new_parser("syncattn-preprocess", DESCRIPTION, EXAMPLE)
        add_options(parser)
        parser.parse_args(words)
    from .preprocessing import preprocess_texts

    preprocess_texts(words)


if __name__ == "__main__":
    sys.exit(main())
