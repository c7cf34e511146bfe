"""``python -m syncattn_lab.recipes.collect``: extract parallel text from archives."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from math import inf
from pathlib import Path

from tqdm import tqdm

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import command, new_parser, positive
from syncattn_fairseq.data.parallel_text import sides, write_pairs

from .text_formats import PAIRS, TEXTS, collect, collect_lines, list_archives


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Write the sentence pairs of all texts and, with ``--alignments``, their word alignments."""
    args = make_parser().parse_args(argv)
    languages = tuple(args.languages)
    counts: list[tuple[int, str]] = []
    left = args.first or inf
    with ExitStack() as stack:
        (writer,) = stack.enter_context(write_pairs([args.output], languages))
        for format_name, address in args.texts:
            count = 0
            pairs = collect(args.archives, format_name, address, languages, args.keep_empty)
            progress = tqdm(pairs, address, unit=" pairs", unit_scale=True, disable=None)
            for pair in progress:  # at least one, so that a text that is not there is noticed
                if left:
                    writer.write(*pair)
                    count += 1
                    left -= 1
                if not left:
                    break
            counts.append((count, address))
        if args.alignments:
            temporary = stack.enter_context(replacing(name_alignments(args.output)))
            links = collect_lines(args.archives, args.alignments)
            if len(links) != (pairs_in_all := sum(count for count, _ in counts)):
                raise DataError(
                    f"{args.alignments}: has {len(links)} lines, but there are {pairs_in_all} "
                    "pairs of text; check that the alignments belong to this text"
                )
            temporary.write_text("".join(f"{line}\n" for line in links), encoding="utf-8")
    for count, address in counts:
        print(f"{count} pairs from {address}")


def _text(value: str) -> tuple[str, str]:
    format_name, _, address = value.partition("=")
    if not address or format_name not in (*PAIRS, *TEXTS):
        raise argparse.ArgumentTypeError(
            f"{value!r} is not FORMAT=ADDRESS with a FORMAT of {', '.join((*TEXTS, *PAIRS))}"
        )
    return format_name, address


def _archives(args: argparse.Namespace) -> list[Path]:
    addresses = [args.alignments] if args.alignments else []
    addresses += [address for _, address in args.texts]
    return list_archives(args.archives, addresses, tuple(args.languages))


def name_alignments(prefix: Path) -> Path:
    """Return the path of the file with the word alignments of a text, ``PREFIX.align``."""
    return prefix.with_name(f"{prefix.name}.align")


def _outputs(args: argparse.Namespace) -> list[Path]:
    links = [name_alignments(args.output)] if args.alignments else []
    return [*sides(args.output, args.languages), *links]


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "python -m syncattn_lab.recipes.collect",
        "Extract parallel text from archives to PREFIX.SRC and PREFIX.TGT, one sentence per line "
        "and pair by pair, in the order of the arguments.",
        example="python -m syncattn_lab.recipes.collect 'plain=news.tgz!news.{language}' \\\n"
        "--archives download --languages en de --output all/train",
    )
    parser.add_argument(
        "texts",
        nargs="+",
        type=_text,
        metavar="FORMAT=ADDRESS",
        help=f"texts to extract. FORMAT: {', '.join((*TEXTS, *PAIRS))}; ADDRESS: ARCHIVE!MEMBER, "
        f"a file of an archive, or a plain FILE; {{language}} in it stands for each of "
        f"--languages, and {{role}} for src or ref; example: plain=news.tgz!news.{{language}}",
    )
    parser.add_argument(
        "--archives",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of the archives and files that each ADDRESS names",
    )
    parser.add_argument(
        "--languages",
        nargs=2,
        required=True,
        metavar=("SRC", "TGT"),
        help="source and target language, as in the names of the files",
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="PREFIX",
        help="prefix of the two files to write, PREFIX.SRC and PREFIX.TGT",
    )
    parser.add_argument(
        "--first", type=positive, help="most pairs to write, from the first (default: all)"
    )
    parser.add_argument(
        "--keep-empty",
        action="store_true",
        help="also write pairs with two empty sides; needed for files of heads, where an empty "
        "line is a sentence without a parse",
    )
    parser.add_argument(
        "--alignments",
        metavar="ADDRESS",
        help="file or archive member with gold alignments, to write as PREFIX.align, a line for "
        "each pair; blank lines are skipped",
    )
    parser.name_files(inputs=[_archives], outputs=[_outputs])
    return parser


if __name__ == "__main__":
    sys.exit(main())
