"""``syncattn-preprocess``: ``fairseq-preprocess`` with binarisation of heads and labels."""

import sys
from collections.abc import Sequence

from ..data.parses import MIN_PARSED, POLICIES, SPLITS
from .command_line import CommandLine
from .common import (
    add_subword_marks,
    add_subwords,
    command,
    fraction,
    new_parser,
    read_subwords,
)
from .tokenise import read_preparation

DESCRIPTION = """\
Binarise texts as fairseq-preprocess does, together with their heads and labels. All options of
fairseq-preprocess work here too (fairseq-preprocess --help): -s, -t, --trainpref, --validpref,
--testpref, --destdir, --joined-dictionary, --srcdict, --workers and so on.
"""

EXAMPLE = """\
syncattn-preprocess -s en -t de --joined-dictionary --destdir data-bin \\
--trainpref pieces/train --trainheads words/train \\
--validpref pieces/valid --validheads words/valid --testpref pieces/test \\
--words-by 'syncattn-tokenise --lang en' 'syncattn-tokenise --lang de' \\
--subwords bpe.model --raw raw/test"""


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Binarise texts and parses, with the options of fairseq and of this package."""
    words = list(sys.argv[1:] if argv is None else argv)
    if {"-h", "--help", "--version"} & set(words):  # importing fairseq would take seconds
        parser = new_parser("syncattn-preprocess", DESCRIPTION, EXAMPLE)
        add_options(parser)
        parser.parse_args(words)
    from fairseq import options

    from ..data.preprocess_texts import preprocess_texts, read_arguments

    fairseqs = options.get_preprocessing_parser()
    parser = CommandLine(prog="syncattn-preprocess", parents=[fairseqs], add_help=False)
    add_options(parser)
    args = parser.parse_args(words)
    commands = args.words_by or []
    preparations = [read_preparation(each, args.truecased) for each in commands]
    if (args.truecased or args.raw) and not commands:
        parser.error("--truecased and --raw need --words-by")
    preprocess_texts(read_arguments(args, preparations, read_subwords(args)))


def add_options(parser: CommandLine) -> None:
    """Add this package's options to those of ``fairseq-preprocess``."""
    parser.add_argument(
        "--start",
        metavar="DIR",
        help="folder made by syncattn-import, of the model that training will start from; its "
        "dictionaries and subword models are used, so do not give --srcdict, --tgtdict or "
        "--subwords",
    )
    group = parser.add_argument_group("Parses")
    for split in SPLITS:
        several = "" if split == "train" else ", comma separated if there are several,"
        group.add_argument(
            f"--{split}heads",
            metavar="FP",
            help=f"prefix FP{several} of the parses of --{split}pref: FP.heads.LANG has the head "
            "of each word, FP.labels.LANG its label, and FP.align the links between source and "
            "target words, such as 0-0 1-2; if there is a text FP.LANG, it is compared with the "
            f"text in subwords (default: the value of --{split}pref)",
        )
    for side, language in (("src", "source"), ("tgt", "target")):
        group.add_argument(
            f"--{side}labeldict",
            metavar="FP",
            help=f"dictionary of {language} labels to reuse (default: a new one from the labels "
            "of the training text)",
        )
    add_subword_marks(
        group, "the marks of the data in --destdir, or the marks detected in the text"
    )
    group.add_argument(
        "--on-bad-parse",
        choices=POLICIES,
        default="stop",
        help="what to do if heads are not a tree over their sentence's words, or labels are not "
        "one for each word: stop, and write nothing, or keep the sentence without them (default: "
        "stop)",
    )
    group.add_argument(
        "--min-parsed",
        type=fraction,
        default=MIN_PARSED,
        metavar="SHARE",
        help="smallest share of sentences, from 0 to 1, that must have heads, or labels, for each "
        f"of their words; below it the command stops (default: {MIN_PARSED})",
    )
    group.add_argument(
        "--add",
        nargs="+",
        metavar="KIND.LANG",
        help="with texts that are binarised in --destdir already: binarise only these files, "
        "such as heads.en, labels.en or align (links); nothing else there changes",
    )

    group = parser.add_argument_group(
        "Raw text",
        "These options are stored in --destdir, beside checkpoints and in exports, so that "
        "models translate raw sentences. Without --trainpref, --validpref and --testpref, only "
        "these options and --subword-marks are added to the data in --destdir.",
    )
    group.add_argument(
        "--words-by",
        nargs=2,
        metavar="COMMAND",
        help="commands that split the source and the target into words, one for each: "
        "syncattn-tokenise with its options, or kytea",
    )
    group.add_argument(
        "--truecased",
        action="store_true",
        help="with --words-by: the words were truecased then, so that a sentence begins in lower "
        "case unless its first word always has a capital",
    )
    group.add_argument(
        "--raw",
        metavar="FP",
        help="with --words-by: path prefix of an untokenised text FP.LANG, such as a test set; the "
        "command splits the text into words, joins them again, and prints the BLEU of the result "
        "against the text (100: nothing is lost)",
    )
    add_subwords(parser, "default: none is stored")


if __name__ == "__main__":
    sys.exit(main())
