"""``syncattn-draw``: draw what a model's heads find in one sentence, as a figure for a paper."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncattn_fairseq.base.errors import DataError, printable
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import (
    add_model_files,
    add_tokenised,
    command,
    new_parser,
    positive,
    read_subwords,
    warn_of_unknown,
)

if TYPE_CHECKING:
    from syncattn_fairseq.inference.model import Model

    from ..report.example import Example

KINDS = {
    "parses": "the parses of the sentence and its translation, and the links between them",
    "attention": "the matrices E, C, D and C E C^T of DBSA and SyncAttn",
    "alignment": "the links of the cross-attention in a grid",
    "distances": "the syntactic distances of LPSI, their trees and the gates",
    "parents": "the weights that PASCAL computes from the gold parse; needs no model",
    "tree-distances": "the edges between words that SDAtt counts in the gold parse; needs no model",
}
#: Those that need no model.
GOLD_KINDS = ("parents", "tree-distances")


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Write the picture."""
    args = _parser().parse_args(argv)
    from ..report import picture_files

    picture_files.check_format(args.output)
    model = None if args.kind in GOLD_KINDS else load_model(args)
    example = _example(args, model)
    if model:
        model.tokenised = True
    picture = _figure(args, example, model).specification()
    picture_files.save(picture, args.output)
    if model:
        warn_of_unknown(model)
    if args.output.suffix.lower() != ".svg" and (boxes := picture_files.list_boxes(picture)):
        print(
            f"warning: {args.output}: no font here has letters of {', '.join(boxes)}, which become "
            "boxes; install one (Debian: apt install fonts-noto-cjk or fonts-noto), or write .svg",
            file=sys.stderr,
        )
    print(f"{args.output}: {args.kind} of: {printable(example.source.text)}")


def _figure(args: argparse.Namespace, example: Example, model: Model | None) -> Any:
    from ..report import figures

    if args.kind == "tree-distances":
        return figures.draw_tree_distances(example)
    if model is None:
        from syncattn_fairseq.inference.answers import Sentence

        models = read_subwords(args)
        if models is None:
            return figures.draw_parents(example)
        segmenter = models[0].open()
        pieces = Sentence(segmenter([example.source.text])[0], segmenter.scheme)
        return figures.draw_parents(example, pieces)
    draw: Any = getattr(figures, f"draw_{args.kind}")
    layer = [args.layer] if args.kind in ("alignment", "distances") else []
    return draw(model, example, *layer)


def _example(args: argparse.Namespace, model: Model | None) -> Example:
    from ..report.example import Example, Side, read_example

    if args.gold:
        if args.sentence or args.reference:
            raise DataError("--gold has its own sentence and reference; give no others")
        known = model.languages if model else (None, None)
        languages = args.source_lang or known[0], args.target_lang or known[1]
        if languages[0] is None:
            raise DataError(f"{args.kind} needs no model, so say the language: --source-lang en")
        return read_example(args.gold, languages[0], languages[1] if model else None, args.number)
    if not args.sentence or not args.sentence.split():
        raise DataError("no sentence; give one, or a test set: --gold words/test --number 1")
    words = [args.sentence, args.reference or ""]
    if model and not model.tokenised:
        segmenters = model.source_segmenter, model.target_segmenter
        words = [s.tokenise([text])[0] for s, text in zip(segmenters, words, strict=True)]
    source, target = (Side(line.split()) for line in words)
    return Example(source, target if target.words else None)


def load_model(args: argparse.Namespace, path: str | None = None) -> Model:
    """Load the model, or that of a path, as `add_model`'s arguments say; `DataError` if none."""
    from syncattn_fairseq.inference import load

    if not (path or args.path):
        raise DataError("give the model, --path CHECKPOINT")
    subwords = read_subwords(args)
    files = path or args.path, args.data_bin, subwords, args.source_parser
    model = load(*files, user_dir=args.user_dir)
    # Sentences of a report come from the test set's words.
    model.tokenised |= path is not None or args.tokenised
    return model


def add_model(parser: CommandLine) -> None:
    """Add the arguments that say which model to use."""
    parser.add_argument(
        "--path", metavar="CHECKPOINT", help="the model, or the folder of an exported one"
    )
    add_model_files(parser)
    add_tokenised(parser)
    parser.name_files(files=["path"])


def _parser() -> CommandLine:
    parser = new_parser(
        "syncattn-draw",
        "Draw one sentence. Blue: right; orange: wrong; grey: there is no gold to compare with.",
        example='syncattn-draw parses "the old man saw it" --output parses.svg \\\n'
        "--path checkpoints/checkpoint_best.pt --data-bin data-bin --subwords bpe.model",
        epilog="kinds: " + "; ".join(f"{kind}: {what}" for kind, what in KINDS.items()),
    )
    parser.add_argument("kind", choices=[*KINDS], help="what to draw, see below")
    parser.add_argument("sentence", nargs="?", help="the source")
    parser.add_argument("--reference", help="its translation; default: the model's own")
    parser.add_argument(
        "--gold",
        metavar="PREFIX",
        help="in place of a sentence: a test set, PREFIX.en and PREFIX.de, with its gold if there "
        "is any: PREFIX.heads.en, PREFIX.labels.en, PREFIX.trees.en, PREFIX.align",
    )
    parser.add_argument("--number", type=positive, default=1, help="which sentence, from 1")
    for letter, side in (("s", "source"), ("t", "target")):
        text = f"{side} language of --gold (default: the model's)"
        parser.add_argument(f"-{letter}", f"--{side}-lang", metavar="LANG", help=text)
    parser.add_argument("--layer", type=positive, help="layer for alignment or distances, from 1")
    add_model(parser)
    parser.add_argument("--output", type=Path, required=True, help="picture: .svg, .png or .pdf")
    parser.name_files(outputs=["output"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
