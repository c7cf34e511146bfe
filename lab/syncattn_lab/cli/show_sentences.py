"""Print sentences in a terminal, for ``syncattn-show``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from syncattn_fairseq.base.errors import DataError, printable
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.cli.common import colour, warn_of_unknown

from .models import load_model

if TYPE_CHECKING:
    from syncattn_fairseq.inference import Model

    from ..printed.sentences import PrintedSentence, PrintedSide
    from ..report.example import Example, Side


def print_sentences(args: argparse.Namespace) -> None:
    """Print parses, links and trees of each sentence, from a model or from ``--analyses``."""
    for number, text in enumerate(_describe_all(args)):
        lines = [colour(printable(line)) for line in text.split("\n")]
        separator = ["", *lines] if number else lines
        print("\n".join(separator), flush=True)


def _describe_all(args: argparse.Namespace) -> Iterator[str]:
    if args.analyses:
        yield from _describe_file(args)
        return
    from .show_heads import choose_heads, describe_heads, list_parses  # imports numpy

    sentences = _read_sentences(args)
    model = load_model(args)
    names, rows = ([], None) if args.heads is None else choose_heads(args, model)
    if args.gold:
        from ..report.example import read_example

        for number in args.number:
            example = read_example(args.gold, *model.languages, number)
            parses = list_parses(model, [example])
            assert example.target is not None
            pair = [example.source.text], [example.target.text]
            lines = [_describe_gold(model, example, args.layer)]
            heads = model.heads(*pair, parses=parses) if names else []
            for each in heads:
                lines += describe_heads(each, names, rows, "reference", example)
            yield "\n".join(lines)
    else:
        for sentence in sentences:
            lines = [_describe_sentence(model, sentence, args.layer)]
            heads = model.heads([sentence]) if names else []
            for each in heads:
                lines += describe_heads(each, names, rows, "translation", None)
            yield "\n".join(lines)
    warn_of_unknown(model)


def _read_sentences(args: argparse.Namespace) -> list[str]:
    if args.gold:
        if args.sentence:
            raise DataError("--gold has the sentences; give no other sentences")
        return []
    lines = args.sentence or ([] if sys.stdin.isatty() else read_lines(0))
    sentences = [line for line in lines if line.split()]
    if not sentences:
        raise DataError(
            "no sentence is given; give sentences, or a test set: --gold words/test --number 1"
        )
    return sentences


def _describe_file(args: argparse.Namespace) -> Iterator[str]:
    from ..printed.output import read_output

    if args.heads is not None:
        raise DataError(
            "--heads: a file of analyses has no attention of heads; give the model, --path"
        )
    if args.sentence or args.gold or args.path:
        raise DataError("--analyses has the sentences; give no other sentences, and no --path")
    printed = read_output(args.analyses)
    for number in args.number:
        if number > len(printed):
            raise DataError(
                f"{args.analyses}: there is no sentence {number}; the file has {len(printed)} "
                "sentences"
            )
        sentence = printed[number - 1]
        head = [f"source       {sentence.source}"]
        name = "reference" if sentence.forced else "translation"
        head.append(f"{name:11}  {sentence.translation}")
        yield "\n".join([*head, *_describe(sentence, name, None, args.layer)])


def _describe_sentence(model: Model, sentence: str, layer: int | None) -> str:
    from syncattn_fairseq.inference.record import make_record

    from ..printed.sentences import from_record

    [analysis] = model.analyse([sentence], every_layer=layer is not None)
    head = [f"source       {sentence}", f"translation  {analysis.translation}"]
    printed = from_record(make_record(analysis))
    return "\n".join([*head, *_describe(printed, "translation", None, layer)])


def _describe_gold(model: Model, example: Example, layer: int | None) -> str:
    """Return lines on a test sentence: the translation, and the reference's analyses."""
    from syncattn_fairseq.inference.record import make_record

    from ..printed.sentences import from_record
    from .show_heads import list_parses

    sources = [example.source.text]
    parses = list_parses(model, [example])
    assert example.target is not None
    [translation] = model.translate(sources, parses=parses)
    [analysis] = model.analyse(
        sources, [example.target.text], parses=parses, every_layer=layer is not None
    )
    head = [
        f"source       {example.source.text}",
        f"reference    {example.target.text}",
        f"translation  {translation}",
    ]
    printed = from_record(make_record(analysis))
    return "\n".join([*head, *_describe(printed, "reference", example, layer)])


def _describe(
    sentence: PrintedSentence, name: str, example: Example | None, layer: int | None
) -> Iterator[str]:
    """Yield lines that draw the parses, links and trees of a sentence pair.

    Args:
        sentence: the sentence pair.
        name: what to call the target text.
        example: the same pair with its gold annotation; None: unknown.
        layer: the layer of links and trees; None: the model's choice for links, and the highest
            layer for trees.
    """
    from ..evaluation.induction import induce_tree
    from ..report import terminal

    sides = {"source": sentence.source, name: sentence.target}
    gold = {"source": example.source, name: example.target} if example else {}
    for title, side in sides.items():
        if side.heads is not None:
            arcs = _draw_arcs(side, gold.get(title), causal=title == name)
            yield from ("", f"{title}, parsed", arcs)
    links = sentence.links if layer is None else sentence.layer_links.get((layer, 0))
    if links is None:
        raise DataError(f"layer {layer} has no links" if layer else "there are no links")
    drawn = terminal.draw_links(links, sentence.source.words, sentence.target.words)
    yield from ("", f"{name}, aligned", drawn)
    for title, side in sides.items():
        chosen = layer or max(side.distances, default=0)
        if chosen in side.distances and side.words:
            tree = induce_tree(side, chosen)
            assert tree is not None
            yield from ("", f"{title}, induced tree", terminal.draw_tree(tree))


def _draw_arcs(side: PrintedSide, gold: Side | None, causal: bool) -> str:
    """Return the lines of a drawn parse with its errors marked.

    If ``causal``, words whose gold head is to their right have no arc: a decoder cannot look ahead.
    """
    from ..report.terminal import draw_arcs

    assert side.heads is not None
    heads = gold.heads if gold and len(gold.words) == len(side.words) else None
    labels = gold.labels if heads and gold else None
    arcs: list[int | None] = [*side.heads]
    for word, head in enumerate(heads or (), 1):
        if causal and head > word:
            arcs[word - 1] = None
    return draw_arcs(side.words, arcs, heads, labels)
