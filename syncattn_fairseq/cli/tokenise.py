"""``syncattn-tokenise``: split text into words as Moses does, without escapes."""

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..base.errors import DataError
from ..base.text import read_lines
from ..base.worker_pool import map_in_order
from ..data.moses import AS_ENGLISH, RULES, load_sacremoses
from ..data.preparation import Preparation
from .common import add_texts, command, new_parser, positive, progress, rewrite_texts


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Tokenise texts in parallel processes."""
    args = make_parser().parse_args(argv)
    sacremoses = load_sacremoses()
    prefixes = sacremoses.corpus.NonbreakingPrefixes()
    known = {*prefixes.available_langs, *prefixes.available_langs.values(), *AS_ENGLISH}
    if args.lang not in known:
        print(
            f"note: Moses has no abbreviations for {args.lang}; using the English ones",
            file=sys.stderr,
        )
    tokenise = _prepare(args).tokenise_line

    def lines(source: Path | int) -> Iterator[str]:
        sentences = map_in_order(tokenise, read_lines(source), args.workers)
        words = (f"{sentence}\n" for sentence in sentences)
        yield from progress(words)

    rewrite_texts(args, lines)


def _prepare(args: argparse.Namespace) -> Preparation:
    tokenizer, case = "spaces" if args.words else "moses", "lower" if args.lowercase else "kept"
    return Preparation(tokenizer, args.lang, args.normalise, args.aggressive, case, args.rules)


def read_preparation(command: str, truecased: bool = False) -> Preparation:
    """Return the tokenizer and settings of a command line that splits text into words.

    Args:
        command: syncattn-tokenise with its options, or a pipeline that ends with KyTea.
        truecased: whether the words are truecased afterwards.

    Raises:
        DataError: the command is another one.
    """
    try:
        name, *options = shlex.split(command.rpartition("|")[2])
    except ValueError:
        name, options = "", []
    if name == "kytea":
        return Preparation("kytea", "ja", rules=RULES[-1])
    if name != "syncattn-tokenise":
        raise DataError(f"--words-by {command}: give syncattn-tokenise with its options, or kytea")
    preparation = _prepare(make_parser().parse_args(options))
    return replace(preparation, case="true") if truecased else preparation


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-tokenise",
        "Split text into words as the Moses tokenizer does (sacremoses), with a space "
        "between them. Characters do not change: & does not become &amp;.",
        example="syncattn-tokenise --lang en --input raw/test.en --output words/test.en",
    )
    parser.add_argument(
        "--lang",
        required=True,
        metavar="LANGUAGE",
        help="language of the text, such as en, whose rules and abbreviations are used",
    )
    parser.add_argument(
        "--normalise",
        action="store_true",
        help="normalise punctuation first: quotes, dashes and spaces",
    )
    parser.add_argument(
        "--aggressive",
        action="store_true",
        help="also split words at hyphens: well-known becomes well @-@ known",
    )
    parser.add_argument("--lowercase", action="store_true", help="write the words in lower case")
    parser.add_argument(
        "--words",
        action="store_true",
        help="split nothing, since the text is in words already",
    )
    parser.add_argument(
        "--rules",
        type=int,
        choices=RULES,
        default=RULES[-1],
        help="version of the tokenizer's rules: 1 splits exactly as sacremoses, for texts that "
        "were split so; 2 keeps combining marks with their letters and colons in Finnish and "
        f"Swedish words, and detokenises with fewer faults (default: {RULES[-1]})",
    )
    parser.add_argument(
        "--workers",
        type=positive,
        default=1,
        help="number of processes that split the text (default: 1)",
    )
    add_texts(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
