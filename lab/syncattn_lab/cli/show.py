"""``syncattn-show``: show sentences in a terminal or a figure, and systems in an HTML page."""

from __future__ import annotations

import argparse
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
from .score_words import add_word_arguments
from .show_figure import KINDS, write_figure
from .show_page import add_page_arguments, write_page
from .show_sentences import print_sentences


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Print sentences in the terminal, or write a figure or an HTML page."""
    args = make_parser().parse_args(argv)
    if args.html:
        write_page(args)
    elif args.figure:
        write_figure(args)
    else:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        print_sentences(args)


def _check_modes(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit with a usage error for an option unused by the chosen mode."""
    asked = {"sentences": not args.html, "with --figure": args.figure, "with --html": args.html}
    for group in parser._action_groups:
        for action in () if asked.get(group.title or "", True) else group._group_actions:
            if _is_given(args, action):
                name = [action.dest, *action.option_strings][-1]
                rule = "does not go with --html" if args.html else f"goes {group.title} FILE"
                parser.error(f"{name} {rule}")
    if args.heads is None and args.rows:
        parser.error("--rows needs --heads")
    if args.heads is not None and args.kind != parser.get_default("kind"):
        parser.error("--kind cannot be used with --heads, which draws its own kind of picture")
    if args.html and not (args.system and args.references):
        parser.error("--html needs --system and --references")


def _is_given(args: argparse.Namespace, action: argparse.Action) -> bool:
    default = action.default
    if isinstance(default, str) and callable(action.type):
        default = action.type(default)
    return bool(getattr(args, action.dest) != default)


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
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
    sentences = parser.add_argument_group("sentences")
    sentences.add_argument(
        "sentence",
        nargs="*",
        default=[],
        help="sentences to show (default: lines of standard input)",
    )
    sentences.add_argument(
        "--gold",
        metavar="PREFIX",
        help="prefix of a test set, PREFIX.en and PREFIX.de, to show its references in place of "
        "sentences; with gold (PREFIX.heads.en, .labels.en, .trees.en, PREFIX.align), errors are "
        "marked, and models that read the source's parse read the gold parse",
    )
    sentences.add_argument(
        "--number",
        type=positive,
        nargs="+",
        default=[1],
        help="with --gold or --analyses: numbers of the sentences to show, from 1 (default: 1)",
    )
    sentences.add_argument(
        "--analyses",
        metavar="FILE",
        help="in place of a model: output of syncattn-translate --jsonl to show",
    )
    sentences.add_argument(
        "--layer",
        type=positive,
        help="number of the layer, from 1, whose links and trees are shown",
    )
    sentences.add_argument(
        "--heads",
        nargs="*",
        metavar="HEAD",
        help="also show where these attention heads look, by layer and number, such as "
        "encoder.1.2, decoder.2.1 or cross.2.4. Without a name: the head of each side that looks "
        "at parents most often, in the first 200 sentences of --gold that are not shown. A "
        "picture (--figure) then has nothing else",
    )
    sentences.add_argument(
        "--rows",
        choices=("input", "predicted"),
        help="with --heads: whether a row of the decoder stands for the word that its state "
        "reads or predicts (default: input in decoder heads and predicted in cross-attention; of "
        "the strongest, the better one)",
    )
    sentences.add_argument(
        "--path",
        metavar="CHECKPOINT",
        help="checkpoint, or folder of an exported model, whose analyses are shown",
    )
    add_model_files(parser)
    add_tokenised(parser)
    parser.add_argument(
        "--figure",
        type=Path,
        metavar="FILE",
        help="picture of one sentence to draw: .svg, .png or .pdf",
    )
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="HTML page to write, which shows the systems of --system side by side",
    )
    figure = parser.add_argument_group(
        "with --figure",
        "Blue: right; orange: wrong; grey: there is no gold to compare with.",
    )
    figure.add_argument(
        "--kind",
        choices=[*KINDS],
        default="parses",
        help="kind of picture; the kinds are explained below (default: parses)",
    )
    figure.add_argument(
        "--translation",
        metavar="TEXT",
        help="translation of the sentence to analyse (default: the model's own)",
    )
    for letter, side in (("s", "source"), ("t", "target")):
        text = f"with --gold: {side} language of its files (default: the model's)"
        figure.add_argument(f"-{letter}", f"--{side}-lang", metavar="LANG", help=text)
    page = parser.add_argument_group(
        "with --html",
        "The page needs no network. It shows scores, their significance and details, and every "
        "sentence with its parses, links and trees. The first system is the baseline, unless "
        "--baseline names another.",
    )
    add_page_arguments(page)
    add_arguments(parser, page, required=False)
    add_word_arguments(parser, page)
    parser.name_files(
        inputs=["analyses", "log", "examined"],
        files=["path", "attention"],
        outputs=["figure", "html"],
    )
    parser.check = _check_modes
    return parser


if __name__ == "__main__":
    sys.exit(main())
