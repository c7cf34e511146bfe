"""``syncattn-show``: show translations, parses, alignments and trees in a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from syncattn_fairseq.base.errors import DataError, printable
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.cli.common import colour, command, new_parser, positive, warn_of_unknown
from syncattn_fairseq.trees.tree import format_conllu

from .draw import add_model, load_model

if TYPE_CHECKING:
    from syncattn_fairseq.inference.model import Model

    from ..report.example import Example, Side

T = TypeVar("T")


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Show each sentence, or print its parses."""
    args = _parser().parse_args(argv)
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sentences = _sentences(args)
    model = load_model(args)
    raw = not model.tokenised
    if raw:
        sentences = model.source_segmenter.tokenise(sentences)
    model.tokenised = True
    examples = _examples(args, sentences, *model.languages)
    for number, example in enumerate(examples):
        if args.conllu:
            reference = [example.target.text] if example.target else None
            heads = _known_heads(model, example)
            [pair] = model.parse([example.source.text], reference, heads)
            parses = (parse.conllu() for parse in (pair.source, pair.target) if parse)
            sys.stdout.write("".join(parses))
        else:
            lines = _show(model, example, args.layer, raw).split("\n")
            print(
                "\n" * bool(number) + "\n".join(colour(printable(line)) for line in lines),
                flush=True,
            )
    warn_of_unknown(model)


def _sentences(args: argparse.Namespace) -> list[str]:
    if args.gold:
        if args.sentence:
            raise DataError("--gold has its own sentences; give no others")
        return []
    lines = args.sentence or ([] if sys.stdin.isatty() else read_lines(0))
    sentences = [line for line in lines if line.split()]
    if not sentences:
        raise DataError("no sentence; give some, or a test set: --gold words/test --number 1")
    return sentences


def _examples(
    args: argparse.Namespace, sentences: Sequence[str], source: str, target: str
) -> list[Example]:
    from ..report.example import Example, Side, read_example

    if not args.gold:
        return [Example(Side(sentence.split())) for sentence in sentences]
    return [read_example(args.gold, source, target, number) for number in args.number]


def _show(model: Model, example: Example, layer: int | None, raw: bool) -> str:
    from ..report import terminal

    text = [example.source.text]
    reference = [example.target.text] if example.target else None
    heads = _known_heads(model, example)
    translation = model.translate(text, heads=heads)
    lines = [f"source       {text[0]}"]
    if reference:
        lines.append(f"reference    {reference[0]}")
    written = model.target_segmenter.detokenise(translation) if raw else translation
    lines.append(f"translation  {written[0]}")

    read = reference or translation
    name = "reference" if reference else "translation"
    parses = _ask(lambda: model.parse(text, read, heads))
    if parses:
        [pair] = parses
        for title, side, parse in (
            ("source", example.source, pair.source),
            (name, example.target, pair.target),
        ):
            if parse:
                lines += ["", f"{title}, parsed", _arcs(parse, side, causal=title != "source")]
    [alignment] = model.align(text, read, layer, heads=heads)
    links = terminal.draw_links(alignment.links, alignment.source.words, alignment.target.words)
    lines += ["", f"{name}, aligned", links]
    distances = _ask(lambda: model.distances(text, read, heads))
    if distances:
        for title, answer in (("source", distances[0].source), (name, distances[0].target)):
            if answer and (tree := _ask(partial(answer.tree, layer))):
                lines += ["", f"{title}, induced tree", terminal.draw_tree(tree)]
    return "\n".join(lines)


def _arcs(parse: Any, side: Side | None, causal: bool) -> str:
    from ..report.terminal import draw_arcs

    words = parse.sentence.words
    heads = side.heads if side and len(side.words) == len(words) else None
    labels = side.labels if heads and side else None
    arcs = [
        None if causal and heads and heads[word - 1] > word else head
        for word, head in enumerate(parse.heads, 1)
    ]
    return draw_arcs(words, arcs, heads, labels)


def _known_heads(model: Model, example: Example) -> str | None:
    """Return the source's gold parse in CoNLL-U; None: there is none, or the model reads none."""
    words, heads, labels = example.source.words, example.source.heads, example.source.labels
    if not model.reads or heads is None or ("labels" in model.reads and labels is None):
        return None
    return format_conllu(words, heads, labels or ["_"] * len(words))


def _ask(question: Callable[[], T]) -> T | None:
    """Return the answer, None if the model cannot show this."""
    try:
        return question()
    except DataError:
        return None


def _parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "syncattn-show",
        "Translate sentences, and show what the model finds in them: the parses of both sides as "
        "arcs, the links between them, and the trees that it induces.",
        example='syncattn-show "the old man saw it" --path checkpoints/checkpoint_best.pt \\\n'
        "--data-bin data-bin --subwords bpe.model",
    )
    parser.add_argument("sentence", nargs="*", help="default: standard input")
    parser.add_argument(
        "--gold",
        metavar="PREFIX",
        help="in place of sentences: a test set, PREFIX.en and PREFIX.de, whose references are "
        "analysed; errors are marked if there is a PREFIX.heads.en or PREFIX.heads.de; models that "
        "read the source's parse read it there",
    )
    parser.add_argument(
        "--number", type=positive, nargs="+", default=[1], help="which sentences, from 1"
    )
    parser.add_argument("--layer", type=positive, help="layer for alignment and trees, from 1")
    parser.add_argument("--conllu", action="store_true", help="print only the parses, in CoNLL-U")
    add_model(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
