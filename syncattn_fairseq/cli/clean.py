"""``syncattn-clean``: remove empty, long and uneven pairs, and hold out pairs for testing."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from ..base.errors import DataError
from ..base.text import count_lines, read_lines
from ..data.parallel_text import (
    EXCLUDED,
    FAULTS,
    find_fault,
    find_sides,
    read_pairs,
    sides,
    simplify,
    write_pairs,
)
from ..data.splitters import find_splitter, split_words
from ..data.words import REPLACEMENT, without_mark
from .command_line import CommandLine
from .common import command, new_parser, positive, progress


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Write the sentence pairs without faults, and print how many pairs have each kind of fault."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if ((args.every or args.last) is None) != (args.held_out is None):
        parser.error("--held-out needs --every or --last, and these options need --held-out")
    if args.every and args.last:
        parser.error("--every and --last exclude each other; give one of the two")
    total = count_lines(*find_sides(args.input, args.languages)) if args.last else None
    pairs = read_pairs(args.input, args.languages)
    faults: Counter[str | None] = Counter()
    replaced = seen = held = 0
    counts = [_choose_count(args.raw, language) for language in args.languages]
    excluded = [{simplify(line) for line in read_lines(path)} for path in _excluded(args)]
    prefixes = [args.output] if args.held_out is None else [args.output, args.held_out]
    with write_pairs(prefixes, args.languages) as writers:
        for pair in progress(pairs, "pairs", total):
            source, target = map(without_mark, pair)
            replaced += (source, target) != pair
            words = counts[0](source), counts[1](target)
            fault = find_fault(*words, args.max_words, args.ratio)
            sentences = map(simplify, (source, target) if excluded else ())
            if fault is None and any(map(set.__contains__, excluded, sentences)):
                fault = EXCLUDED
            faults[fault] += 1
            seen += 1
            if fault is None:
                held_out = args.every is not None and faults[None] % args.every == 0
                held_out |= total is not None and seen > total - args.last
                held += held_out
                writers[held_out].write(source, target)
        if not faults[None]:
            [(fault, count)] = faults.most_common(1)
            raise DataError(
                f"{args.input}: none of the {seen} pairs would be kept; the most frequent cause, "
                f"{count} pairs: {fault}"
            )
        if args.held_out is not None and not 0 < held < faults[None]:
            option = "--every" if args.every else "--last"
            raise DataError(
                f"{args.input}: would hold out {held} of the {faults[None]} pairs that are kept; "
                f"choose another {option}"
            )
    print(f"{seen} pairs, {faults[None]} kept")
    if args.held_out is not None:
        print(f"{held} of them held out")
    for fault in FAULTS if args.exclude else FAULTS[:-1]:
        print(f"{faults[fault]} left out: {fault}")
    if replaced:
        print(f"{replaced} contained U+2581, which is now {REPLACEMENT}")


def _choose_count(raw: bool, language: str) -> Callable[[str], int]:
    """Return the function for counting the words of a sentence."""
    if not raw:
        return lambda sentence: len(sentence.split())
    splitter, lack = find_splitter(language)
    if lack:
        print(f"note: {lack}", file=sys.stderr)
    return lambda sentence: len(split_words(sentence, splitter))


def _excluded(args: argparse.Namespace) -> list[Path]:
    return find_sides(args.exclude, args.languages) if args.exclude else []


def _written(args: argparse.Namespace) -> list[Path]:
    prefixes = filter(None, (args.output, args.held_out))
    return [path for prefix in prefixes for path in sides(prefix, args.languages)]


def _ratio(value: str) -> float:
    number = float(value)
    if not number >= 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return number


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-clean",
        "Remove pairs with an empty, too long or uneven side, and write the others to PREFIX.SRC "
        "and PREFIX.TGT. Sentences do not change, except that U+2581, which would stop "
        f"syncattn-bpe, becomes {REPLACEMENT}.",
        example="syncattn-clean --languages en de --input all/train --output words/train \\\n"
        "--max-words 100 --ratio 2",
    )
    parser.add_argument(
        "--languages",
        nargs=2,
        required=True,
        metavar=("SRC", "TGT"),
        help="source and target language, which are the suffixes of the files",
    )
    parser.add_argument(
        "--input",
        type=Path,
        required=True,
        metavar="PREFIX",
        help="prefix of the two texts to read, PREFIX.SRC and PREFIX.TGT",
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="PREFIX",
        help="prefix of the two texts to write with the pairs that are kept, PREFIX.SRC and "
        "PREFIX.TGT",
    )
    parser.add_argument(
        "--raw",
        action="store_true",
        help="find the words to count by the rules of each language, since sentences are as "
        "people write them (default: words are separated by spaces)",
    )
    parser.add_argument(
        "--max-words",
        type=positive,
        help="remove pairs with more than N words in the source or in the target (default: no "
        "limit)",
    )
    parser.add_argument(
        "--ratio",
        type=_ratio,
        metavar="R",
        help="remove pairs whose longer side has more than R times as many words as the shorter "
        "side (default: no limit)",
    )
    parser.add_argument(
        "--every",
        type=positive,
        help="with --held-out: hold out every N-th of the pairs that are kept, for a test set",
    )
    parser.add_argument(
        "--last",
        type=positive,
        help="with --held-out: of the last N pairs of --input, hold out those that are kept, for "
        "a test set",
    )
    parser.add_argument(
        "--exclude",
        type=Path,
        metavar="PREFIX",
        help="prefix of a test set, PREFIX.SRC and PREFIX.TGT; remove pairs with a source or a "
        "target that is also there, apart from spaces and capitals",
    )
    parser.add_argument(
        "--held-out",
        type=Path,
        metavar="PREFIX",
        help="with --every or --last: prefix of the two texts to write with the pairs held out, "
        "PREFIX.SRC and PREFIX.TGT; they are not in --output",
    )
    parser.name_files(
        inputs=[lambda args: find_sides(args.input, args.languages), _excluded], outputs=[_written]
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
