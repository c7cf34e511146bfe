"""``syncattn-clean``: leave out pairs that are empty, long or uneven; hold out some of the rest."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from ..base.errors import DataError
from ..base.files import same_line_count
from ..recipes.clean import FAULTS, find_fault
from ..recipes.parallel import read_pairs, sides, write_pairs
from .common import command, new_parser, positive


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = _parser()
    args = parser.parse_args(argv)
    if (args.every is None) != (args.held_out is None):
        parser.error("give --every and --held-out together, or neither")
    if args.held_out == args.output:
        parser.error("--held-out and --output are the same")
    total = same_line_count(*sides(args.input, args.languages))
    pairs = read_pairs(args.input, args.languages)
    faults: Counter[str | None] = Counter()
    prefixes = [args.output] if args.held_out is None else [args.output, args.held_out]
    with write_pairs(prefixes, args.languages) as writers:
        progress = tqdm(pairs, total=total, unit=" pairs", unit_scale=True, disable=None)
        for source, target in progress:
            fault = find_fault(source, target, args.max_words, args.ratio)
            faults[fault] += 1
            if fault is None:
                held_out = args.every is not None and faults[None] % args.every == 0
                writers[held_out].write(source, target)
        if args.every is not None and faults[None] < args.every:
            raise DataError(
                f"{args.input}: {faults[None]} pairs are kept, too few to hold out every "
                f"{args.every}th; choose a smaller --every"
            )
    print(f"{total} pairs, {faults[None]} kept")
    if args.every is not None:
        print(f"{faults[None] // args.every} of them held out")
    for fault in FAULTS:
        print(f"{faults[fault]} left out: {fault}")


def _ratio(value: str) -> float:
    number = float(value)
    if not number >= 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "syncattn-clean",
        "Write the pairs of tokenised text that both have words, and not too many, to "
        "PREFIX.SRC and PREFIX.TGT. Sentences themselves stay as they are.",
    )
    parser.add_argument("--languages", nargs=2, required=True, metavar=("SRC", "TGT"))
    parser.add_argument("--input", type=Path, required=True, metavar="PREFIX")
    parser.add_argument("--output", type=Path, required=True, metavar="PREFIX")
    parser.add_argument(
        "--max-words", type=positive, metavar="N", help="on either side (default: any number)"
    )
    parser.add_argument(
        "--ratio",
        type=_ratio,
        metavar="R",
        help="keep a pair if its longer side has at most R times the words of the other "
        "(default: whatever their lengths)",
    )
    parser.add_argument(
        "--every",
        type=positive,
        metavar="N",
        help="of the pairs that are kept, write every Nth to --held-out instead, for validation",
    )
    parser.add_argument("--held-out", type=Path, metavar="PREFIX")
    return parser


if __name__ == "__main__":
    sys.exit(main())
