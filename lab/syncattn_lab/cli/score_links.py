"""``syncattn-score links``: score, symmetrise and write word alignments."""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tqdm import tqdm

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.base.packed import Packed
from syncattn_fairseq.base.text_tables import format_table
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import add_subword_marks, announce, new_parser, publish
from syncattn_fairseq.data.words import Link

from ..evaluation.alignment import (
    count_links,
    format_links,
    read_alignments,
    say_one_based,
    score_counts,
)
from ..evaluation.symmetrisation import SYMMETRISATIONS, symmetrise

if TYPE_CHECKING:
    from ..evaluation.word_alignment import WordAlignment

_Outputs: TypeAlias = "dict[tuple[str, str], Packed[WordAlignment | None]]"
"""The word alignment of each sentence, by (name of the system, direction)."""

_Linked: TypeAlias = "tuple[list[WordAlignment], dict[tuple[str, str], set[Link]]]"
_Gold: TypeAlias = tuple[Sequence[set[Link]], Sequence[set[Link]]]
"""The sure links of each sentence, and the possible links of each sentence."""

_Counts: TypeAlias = dict[tuple[str, str], Packed[tuple[int, int, int, int]]]
Scores: TypeAlias = dict[str, dict[str, dict[str, Any]]]
"""AER, precision, recall and number of links, by system and by direction or symmetrisation."""

_DIRECTIONS = ("forward", "backward")


def run(argv: Sequence[str]) -> None:
    """Score word alignments, and write the alignment files named by ``--output``."""
    args = make_parser().parse_args(argv)
    outputs = _read(args)
    sentences = len(next(iter(outputs.values())))
    ways = _choose_ways(args, outputs)
    gold = _read_gold(args, sentences)
    counts: _Counts = defaultdict(Packed)
    left_out = 0
    with ExitStack() as stack:
        paths = [stack.enter_context(replacing(Path(path))) for _, _, path in args.output]
        files = [stack.enter_context(path.open("w", encoding="utf-8")) for path in paths]
        linked = tqdm(_link(outputs, ways), unit=" sentences", total=sentences, disable=None)
        for index, (alignments, links) in enumerate(linked):
            left_out += not alignments
            for file, (name, way, _) in zip(files, args.output, strict=True):
                file.write(format_links(links.get((name, way), set())) + "\n")
            if gold and alignments:
                sure, possible = gold[0][index], gold[1][index]
                with naming(f"{args.gold}:{index + 1}"):
                    for alignment in alignments:
                        alignment.check_gold(sure | possible)
                for key, found in links.items():
                    counts[key].append(count_links(sure, possible, found))
        if gold:
            _warn_of_gold(args, gold, outputs)
        scores = _score(ways, counts) if gold else {}
        document = {"systems": scores, "sentences": sentences - left_out, "left_out": left_out}
        for file in files:
            file.close()
        publish(document, _report(scores, sentences - left_out, left_out), args.json)
    for name, way, path in args.output:
        announce(path, f"links of {sentences} sentences, {name} {way}", sys.stderr)


def _choose_ways(args: argparse.Namespace, outputs: _Outputs) -> dict[str, list[str]]:
    """Return the directions and symmetrisations to score or write, by system."""
    ways = {name: _list_ways(outputs, name) for name, _ in outputs}
    for name, way, _ in args.output:
        if name not in ways:
            raise DataError(f"--output {name} {way}: no alignment has the name {name}")
        if way not in ways[name]:
            raise DataError(f"--output {name} {way}: choose one of {', '.join(ways[name])}")
    if args.gold:
        return ways
    asked = [(name, way) for name, way, _ in args.output]
    return {name: [way for way in some if (name, way) in asked] for name, some in ways.items()}


def _list_ways(outputs: _Outputs, name: str) -> list[str]:
    ways = [direction for direction in _DIRECTIONS if (name, direction) in outputs]
    return [*ways, *SYMMETRISATIONS] if len(ways) == 2 else ways


def _read_gold(args: argparse.Namespace, sentences: int) -> _Gold | None:
    if not args.gold:
        return None
    gold = read_alignments(args.gold, args.one_based)
    if len(gold[0]) != sentences:
        raise DataError(
            f"{args.gold}: has {len(gold[0])} lines, but {sentences} sentences were decoded"
        )
    return gold


def _link(outputs: _Outputs, ways: Mapping[str, Sequence[str]]) -> Iterator[_Linked]:
    """Yield each sentence's alignments, and its links by system and direction or symmetrisation.

    Both are empty if an unknown subword hides the words of the sentence.
    """
    from ..evaluation.word_alignment import pair_sentences

    for row in pair_sentences({f"--{way} {name}": a for (name, way), a in outputs.items()}):
        if row is None:
            yield [], {}
            continue
        links = {key: one.links for key, one in zip(outputs, row, strict=True)}
        for name, wanted in ways.items():
            methods = [way for way in wanted if way in SYMMETRISATIONS]
            if methods:
                forward, backward = (links[name, direction] for direction in _DIRECTIONS)
                combined = symmetrise(forward, backward, methods)
                links |= {(name, method): each for method, each in combined.items()}
        yield row, links


def _warn_of_gold(args: argparse.Namespace, gold: _Gold, outputs: _Outputs) -> None:
    """Print a warning if the gold links seem to count words from 1."""
    printed = (one.links for alignments in outputs.values() for one in alignments if one)
    if warning := say_one_based(gold, printed):
        print(f"warning: {args.gold}: {warning}", file=sys.stderr)


def _read(args: argparse.Namespace) -> _Outputs:
    from ..evaluation.gold_words import read_gold_words
    from ..evaluation.translation import read_text
    from ..evaluation.word_alignment import read_word_alignments  # imports numpy

    outputs: _Outputs = {}
    words = None
    if args.source:
        words = read_gold_words(read_text(args.source)), read_gold_words(read_text(args.target))
    for direction in _DIRECTIONS:
        for name, path in getattr(args, direction):
            if (name, direction) in outputs:
                raise DataError(f"--{direction} {name}: give each name once")
            backward = direction == "backward"
            by_layer = read_word_alignments(path, args.subword_marks, backward, words)
            for layer, alignments in by_layer.items():
                outputs[f"{name}{_say_layer(layer)}", direction] = alignments
    return outputs


def _say_layer(layer: tuple[int, int] | None) -> str:
    """Return the suffix of a system's name for a layer: `` layer 6``, or `` layer 6 head 3``."""
    if layer is None:
        return ""
    number, head = layer
    return f" layer {number} head {head}" if head else f" layer {number}"


def _score(ways: Mapping[str, Sequence[str]], counts: _Counts) -> Scores:
    def score(each: Sequence[tuple[int, int, int, int]]) -> dict[str, float]:
        return {**vars(score_counts(each)), "links": sum(row[2] for row in each)}

    return {name: {way: score(counts[name, way]) for way in some} for name, some in ways.items()}


def _report(scores: Scores, sentences: int, left_out: int) -> str:
    rows = [["alignment", "AER", "precision", "recall", "links"]]
    for name, ways in scores.items():
        for way, score in ways.items():
            percent = (f"{100 * score[part]:.2f}" for part in ("aer", "precision", "recall"))
            rows.append([f"{name} {way}", *percent, str(score["links"])])
    parts = []
    if scores:
        note = f"AER, precision and recall in %, over {sentences} sentences"
        parts += [format_table(rows), "", note]
    if left_out:
        count = f"{left_out} of {sentences + left_out} sentences"
        parts.append(f"left out: {count}, in which an unknown subword hides where words begin")
    return "\n".join(parts)


def _check_options(parser: CommandLine, args: argparse.Namespace) -> None:
    """Exit with a usage error if options give nothing to read or nothing to do."""
    if not args.forward and not args.backward:
        parser.error("give --forward or --backward, or both")
    if not args.gold and not args.output:
        parser.error("give --gold to score alignments, --output to write them, or both")
    if bool(args.source) != bool(args.target):
        parser.error("give --source and --target, or neither")


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-score links",
        "Score, symmetrise and write word alignments; nothing is aligned here. They are the links "
        "that models printed, or files of links. Models print those of every decoder layer with "
        "syncattn-translate --jsonl --force REFERENCES --every-layer; they are called NAME layer 1 "
        "and so on, or NAME layer 1 head 2. With models of both directions, also symmetrised: "
        + ", ".join(SYMMETRISATIONS)
        + ".",
        example="syncattn-score links --gold words/test.align --forward SyncAttn forced.jsonl",
    )
    system: dict[str, Any] = {"nargs": 2, "action": "append", "default": []}
    parser.add_argument(
        "--forward",
        **system,
        metavar=("NAME", "FILE"),
        help="NAME of a system, and FILE with its links of a model from source to target: output "
        "of syncattn-translate --jsonl --force or of fairseq-generate --score-reference "
        "--print-alignment, or a Pharaoh file such as fast_align's (i-j, source-target, from 0); "
        "give the option once for each system",
    )
    parser.add_argument(
        "--backward",
        **system,
        metavar=("NAME", "FILE"),
        help="NAME of a system, and FILE with its links of a model from target to source on the "
        "same sentences, or a Pharaoh file, source-target as well (fast_align -r); links of the "
        "same NAME in --forward are symmetrised with them",
    )
    parser.add_argument(
        "--gold",
        metavar="FILE",
        help="gold links of words, source-target, to compute AER with: i-j is a sure link, i?j "
        "(Pharaoh) or ipj (talp) a possible one",
    )
    parser.add_argument(
        "--one-based",
        action="store_true",
        help="with --gold: words are counted from 1 there, as talp files usually do (default: "
        "from 0)",
    )
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            metavar="FILE",
            help="for models of raw sentences, which may show other words than --gold: text of "
            f"the {side} in the words of --gold, separated by spaces",
        )
    parser.add_argument(
        "--output",
        nargs=3,
        action="append",
        default=[],
        metavar=("NAME", "ALIGNMENT", "FILE"),
        help="write the links of the system NAME to FILE: i-j from 0, one line for each sentence, "
        "empty if the sentence is left out; ALIGNMENT is forward, backward, or how both are "
        "combined, such as grow-diag-final-and-moses",
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="JSON file to write with all numbers; '-' prints them in place of the table",
    )
    add_subword_marks(parser)
    parser.name_files(
        inputs=["forward", "backward", "gold", "source", "target"], outputs=["output", "json"]
    )
    parser.check = _check_options
    return parser
