"""``syncattn-align``: score, symmetrise and write word alignments that are there already."""

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

from tqdm import tqdm

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.base.packed import Packed
from syncattn_fairseq.base.text_tables import format_table
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import add_subword_marks, announce, command, new_parser, publish
from syncattn_fairseq.data.analysis_lines import Link

from ..evaluation.alignment import (
    count_links,
    format_links,
    read_alignments,
    say_one_based,
    score_counts,
)
from ..evaluation.symmetrisation import SYMMETRISATIONS, symmetrise
from ..evaluation.word_alignment import WordAlignment, pair_sentences, read_word_alignments

_Outputs: TypeAlias = dict[tuple[str, str], Packed[WordAlignment | None]]
"""The alignments of each sentence, by the name of a system and the direction."""

_Counts: TypeAlias = dict[tuple[str, str], Packed[tuple[int, int, int, int]]]
Scores: TypeAlias = dict[str, dict[str, dict[str, Any]]]
"""AER, precision, recall and the number of links, by system and direction."""

_DIRECTIONS = ("forward", "backward")


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Score the alignments, and write those that are asked for."""
    parser = _parser()
    args = parser.parse_args(argv)
    if not args.forward and not args.backward:
        parser.error("give --forward or --backward, or both")
    if not args.gold and not args.output:
        parser.error("give --gold to score alignments, --output to write them, or both")
    outputs = _read(args)
    sentences = len(next(iter(outputs.values())))
    ways = {name: _list_ways(outputs, name) for name, _ in outputs}
    for name, way, _ in args.output:
        if way not in ways.get(name, ()):
            known = ", ".join(ways.get(name, ()))
            raise DataError(
                f"--output {name} {way}: "
                + (f"choose one of {known}" if known else f"no alignment is named {name}")
            )
    gold = read_alignments(args.gold, args.one_based) if args.gold else None
    if gold and len(gold[0]) != sentences:
        raise DataError(f"{args.gold}: {len(gold[0])} lines, but {sentences} decoded sentences")
    if gold is None:  # the others are not needed
        asked = [(name, way) for name, way, _ in args.output]
        ways = {name: [way for way in ways[name] if (name, way) in asked] for name in ways}
    counts: _Counts = defaultdict(Packed)
    left_out = 0
    with ExitStack() as stack:
        paths = [stack.enter_context(replacing(Path(path))) for _, _, path in args.output]
        files = [stack.enter_context(path.open("w", encoding="utf-8")) for path in paths]
        rows = pair_sentences({f"--{way} {name}": a for (name, way), a in outputs.items()})
        for index, row in enumerate(tqdm(rows, unit=" sentences", total=sentences, disable=None)):
            links: dict[tuple[str, str], set[Link]] = {}
            if row is None:
                left_out += 1
            else:
                links = {key: one.links for key, one in zip(outputs, row, strict=True)}
                for name, wanted in ways.items():
                    methods = [way for way in wanted if way in SYMMETRISATIONS]
                    if methods:
                        forward, backward = (links[name, direction] for direction in _DIRECTIONS)
                        combined = symmetrise(forward, backward, methods)
                        links |= {(name, method): each for method, each in combined.items()}
            for file, (name, way, _) in zip(files, args.output, strict=True):
                file.write(format_links(links.get((name, way), set())) + "\n")
            if gold and row:
                sure, possible = gold[0][index], gold[1][index]
                with naming(f"{args.gold}:{index + 1}"):
                    for alignment in row:
                        alignment.check_gold(sure | possible)
                for key, found in links.items():
                    counts[key].append(count_links(sure, possible, found))
        printed = (one.links for alignments in outputs.values() for one in alignments if one)
        if gold and (warning := say_one_based(gold, printed)):
            print(f"warning: {args.gold}: {warning}", file=sys.stderr)
        scores = _score(ways, counts) if gold else {}
        document = {"systems": scores, "sentences": sentences - left_out, "left_out": left_out}
        for file in files:
            file.close()
        publish(document, _report(scores, sentences - left_out, left_out), args.json)
    for name, way, path in args.output:
        announce(path, f"links of {sentences} sentences, {name} {way}", sys.stderr)


def _read(args: argparse.Namespace) -> _Outputs:
    outputs: _Outputs = {}
    for direction in _DIRECTIONS:
        for name, path in getattr(args, direction):
            if (name, direction) in outputs:
                raise DataError(f"--{direction} {name}: give each name once")
            backward = direction == "backward"
            by_topic = read_word_alignments(path, args.subword_marks, backward)
            for topic, alignments in by_topic.items():
                outputs[name if topic is None else f"{name} {topic.name}", direction] = alignments
    return outputs


def _list_ways(outputs: _Outputs, name: str) -> list[str]:
    ways = [direction for direction in _DIRECTIONS if (name, direction) in outputs]
    return [*ways, *SYMMETRISATIONS] if len(ways) == 2 else ways


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
    parts = [format_table(rows), "", f"AER, precision and recall in %, over {sentences} sentences"]
    note = f"left out: {left_out} of {sentences + left_out} sentences, where an unknown subword "
    note += "hides where words begin"
    return "\n".join(parts * bool(scores) + [note] * bool(left_out))


def _parser() -> CommandLine:
    parser = new_parser(
        "syncattn-align",
        "Score, symmetrise and write word alignments; it aligns no text itself. They are what "
        "models printed with fairseq-generate --score-reference --print-alignment, without "
        "--remove-bpe; with --print-layer-alignments, those of every decoder layer, named NAME "
        "layer 1 and so on, or of its single heads, NAME layer 1 head 2. With models of both "
        "directions, also symmetrised: " + ", ".join(SYMMETRISATIONS) + ".",
        example="syncattn-align --gold words/test.align --forward SyncAttn forced.txt",
    )
    system: dict[str, Any] = {"nargs": 2, "action": "append", "default": []}
    parser.add_argument(
        "--forward",
        **system,
        metavar=("NAME", "FILE"),
        help="output of a model from source to target, or a Pharaoh file such as fast_align's: "
        "i-j, source-target, 0-based; repeat for each system",
    )
    parser.add_argument(
        "--backward",
        **system,
        metavar=("NAME", "FILE"),
        help="output of a model from target to source on the same sentences, or a Pharaoh file, "
        "source-target as well (fast_align -r); with the NAME of a --forward, both are symmetrised",
    )
    parser.add_argument(
        "--gold",
        metavar="FILE",
        help="gold alignments of words, source-target, for AER: i-j sure; i?j (Pharaoh) or ipj "
        "(talp) possible",
    )
    parser.add_argument(
        "--one-based",
        action="store_true",
        help="--gold counts from 1, as talp files usually do, not from 0",
    )
    parser.add_argument(
        "--output",
        nargs=3,
        action="append",
        default=[],
        metavar=("NAME", "ALIGNMENT", "FILE"),
        help="write the links of words, 0-based i-j, one line per sentence, empty if the sentence "
        "is left out; ALIGNMENT: forward, backward or a symmetrised one, such as "
        "grow-diag-final-and-moses",
    )
    parser.add_argument("--json", metavar="FILE", help="write all numbers; -: instead of the table")
    add_subword_marks(parser)
    parser.name_files(inputs=["forward", "backward", "gold"], outputs=["output", "json"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
