"""Draw a figure of a single sentence, for ``syncattn-show --figure``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from syncattn_fairseq.base.errors import DataError, printable
from syncattn_fairseq.cli.common import read_subwords, warn_of_unknown
from syncattn_fairseq.data.words import find_words, is_raw

from .models import load_model

if TYPE_CHECKING:
    from syncattn_fairseq.inference import Model

    from ..report.example import Example

KINDS = {
    "parses": "the parses of the sentence and its translation, and the links between them",
    "attention": "the matrices E, C, D and C E C^T of DBSA and SyncAttn",
    "alignment": "the links of the cross-attention in a grid",
    "distances": "the syntactic distances of LPSI, their trees and the gates",
    "parents": "the weights that PASCAL computes from the gold parse; needs no model",
    "tree-distances": "the edges between words that SDAtt counts in the gold parse; needs no model",
}
#: The kinds of figures that need no model.
GOLD_KINDS = ("parents", "tree-distances")


def write_figure(args: argparse.Namespace) -> None:
    """Draw the sentence named by the arguments, and write the picture."""
    from ..report import picture_files

    picture_files.check_format(args.figure)
    kind = args.kind if args.heads is None else "heads"
    model = None if kind in GOLD_KINDS else load_model(args)
    example = _read_example(args, model)
    picture = _draw(args, example, model)
    picture_files.save(picture, args.figure)
    if model:
        warn_of_unknown(model)
    if args.figure.suffix.lower() != ".svg" and (boxes := picture_files.list_boxes(picture)):
        print(
            f"warning: {args.figure}: no installed font has letters of {', '.join(boxes)}, so "
            "the picture shows boxes; install a font (Debian: apt install fonts-noto-cjk or "
            "fonts-noto), or write .svg",
            file=sys.stderr,
        )
    print(f"{args.figure}: {kind} of: {printable(example.source.text)}")


def _draw(args: argparse.Namespace, example: Example, model: Model | None) -> Any:
    """Return the picture of the requested kind, as SVG or Vega-Lite for `picture_files.save`."""
    from ..report import figures

    if model is None and args.kind == "tree-distances":
        return figures.draw_tree_distances(example).specification()
    if model is None:
        from syncattn_fairseq.inference.answers import Sentence

        models = read_subwords(args)
        if models is None:
            return figures.draw_parents(example).specification()
        segmenter = models[0].open()
        pieces = Sentence(segmenter([example.source.text])[0], segmenter.scheme)
        return figures.draw_parents(example, pieces).specification()
    if args.heads is not None:
        from .show_heads import choose_heads

        return figures.draw_heads(model, example, *choose_heads(args, model)).specification()
    if args.kind == "parses":
        return figures.draw_parses(model, example)
    draw: Any = getattr(figures, f"draw_{args.kind}")
    layer = [args.layer] if args.kind in ("alignment", "distances") else []
    return draw(model, example, *layer).specification()


def _read_example(args: argparse.Namespace, model: Model | None) -> Example:
    from ..report.example import Example, Side, read_example

    if args.analyses:
        raise DataError(
            "--figure: a figure needs more than a file of analyses has; give the model, --path"
        )
    [number, *more] = args.number
    if more or len(args.sentence) > 1:
        raise DataError("--figure: give one sentence, or one --number of --gold")
    if args.gold:
        if args.sentence or args.translation:
            raise DataError(
                "--gold has the sentence and the reference; give no other sentence or --translation"
            )
        known = model.languages if model else (None, None)
        languages = args.source_lang or known[0], args.target_lang or known[1]
        if languages[0] is None:
            raise DataError(
                f"{args.kind} is drawn without a model; name the language: --source-lang en"
            )
        return read_example(args.gold, languages[0], languages[1] if model else None, number)
    if not args.sentence or not args.sentence[0].split():
        raise DataError(
            "no sentence is given; give a sentence, or a test set: --gold words/test --number 1"
        )
    texts = [args.sentence[0], args.translation or ""]
    if model and is_raw(model.source_segmenter.scheme):
        schemes = model.source_segmenter.scheme, model.target_segmenter.scheme
        places = map(find_words, texts, schemes)
        sides = [Side.cut(text, spans) for text, spans in zip(texts, places, strict=True)]
        return Example(sides[0], sides[1] if sides[1].words else None)
    if model and not model.tokenised:
        segmenters = model.source_segmenter, model.target_segmenter
        texts = [s.tokenise([text])[0] for s, text in zip(segmenters, texts, strict=True)]
        model.tokenised = True  # the figures ask about these words
    source, target = (Side(line.split()) for line in texts)
    return Example(source, target if target.words else None)
