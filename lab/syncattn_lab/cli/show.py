"""``syncattn-show``: show sentences in a terminal or a figure, and systems in an HTML page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import (
    add_model_files,
    add_tokenised,
    command,
    new_parser,
    positive,
)

from .score import add_arguments
from .show_figure import KINDS, write_figure
from .show_page import add_page_arguments, write_page
from .show_sentences import print_sentences


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Show what is asked for."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.html:
        if not (args.system and args.references):
            parser.error("--html needs --system and --references")
        write_page(args)
    elif args.figure:
        write_figure(args)
    else:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        print_sentences(args)


def make_parser() -> CommandLine:
    """Make the parser of the arguments."""
    parser = new_parser(
        "syncattn-show",
        "Show what a model finds in sentences: the parses of both sides as arcs, the links between "
        "their words, and the trees that it induces. In a terminal; with --figure, as a picture of "
        "one sentence for a paper; with --html, a page of systems side by side, from what they "
        "printed.",
        example='syncattn-show "the old man saw it" --path checkpoints/checkpoint_best.pt \\\n'
        "--data-bin data-bin --subwords bpe.model\n"
        "syncattn-show --html page.html --references words/test.de --tokenize none \\\n"
        "--system SyncAttn translations.txt forced.jsonl",
        epilog="kinds of figures: " + "; ".join(f"{kind}: {what}" for kind, what in KINDS.items()),
    )
    parser.add_argument("sentence", nargs="*", help="what to show (default: standard input)")
    parser.add_argument(
        "--gold",
        metavar="PREFIX",
        help="in place of sentences: a test set, PREFIX.en and PREFIX.de, whose references are "
        "analysed, with its gold if there is any: PREFIX.heads.en, PREFIX.labels.en, "
        "PREFIX.trees.en, PREFIX.align; errors are marked, and models that read the source's parse "
        "read it there",
    )
    parser.add_argument(
        "--number", type=positive, nargs="+", default=[1], help="which sentences, from 1 (1)"
    )
    parser.add_argument(
        "--analyses",
        metavar="FILE",
        help="in place of a model: what syncattn-translate --jsonl printed",
    )
    parser.add_argument("--layer", type=positive, help="layer of the links and trees, from 1")
    parser.add_argument(
        "--path", metavar="CHECKPOINT", help="the model, or the folder of an exported one"
    )
    add_model_files(parser)
    add_tokenised(parser)
    figure = parser.add_argument_group("a figure")
    figure.add_argument(
        "--figure",
        type=Path,
        metavar="FILE",
        help="draw one sentence into this file, .svg, .png or .pdf. Blue: right; orange: wrong; "
        "grey: there is no gold to compare with",
    )
    figure.add_argument(
        "--kind", choices=[*KINDS], default="parses", help="what to draw, see below (parses)"
    )
    figure.add_argument(
        "--translation",
        metavar="TEXT",
        help="the sentence's translation (default: the model's own)",
    )
    for letter, side in (("s", "source"), ("t", "target")):
        text = f"{side} language of --gold (default: the model's)"
        figure.add_argument(f"-{letter}", f"--{side}-lang", metavar="LANG", help=text)
    page = parser.add_argument_group(
        "a page",
        "It needs no network: scores, their significance and details, and every sentence with its "
        "parses, links and trees. The first system is the baseline, unless --baseline names "
        "another.",
    )
    page.add_argument("--html", type=Path, metavar="FILE", help="write the page into this file")
    add_page_arguments(page)
    add_arguments(parser, page, required=False)
    parser.name_files(
        inputs=["analyses", "log"], files=["path", "attention"], outputs=["figure", "html"]
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
