"""``syncattn-align``: score, symmetrise and write word alignments that are there already."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

from tqdm import tqdm

from ...base.errors import DataError
from ...base.files import replacing
from ...base.text_tables import format_table
from ...cli.command_line import CommandLine
from ...cli.common import add_subword_marks, announce, command, new_parser, publish
from ...printed.analysis_lines import Link
from ..evaluation.alignment import (
    alignment_error_rate,
    read_alignments,
    say_one_based,
    write_alignments,
)
from ..evaluation.symmetrisation import SYMMETRISATIONS
from ..evaluation.word_alignment import WordAlignment, read_word_alignments, select_common_sentences

Links: TypeAlias = Mapping[tuple[str, str], list[set[Link]]]
"""Links between words by the name of a system and the direction, one set per sentence."""

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
    common = select_common_sentences(
        {f"--{way} {name}": alignments for (name, way), alignments in outputs.items()}
    )
    columns = zip(*common.values(), strict=True)
    links = {key: [a.links for a in column] for key, column in zip(outputs, columns, strict=True)}
    for name, way, _ in args.output:
        if way not in _list_ways(links, name):
            known = ", ".join(_list_ways(links, name))
            raise DataError(
                f"--output {name} {way}: "
                + (f"choose one of {known}" if known else f"no alignment is named {name}")
            )
    scores = _score(links, *_read_gold(args, sentences, common)) if args.gold else {}
    left_out = sentences - len(common)
    document = {"systems": scores, "sentences": len(common), "left_out": left_out}
    with ExitStack() as stack:
        for name, way, path in args.output:
            chosen = dict(zip(common, _combine(links, name, way), strict=True))
            write_alignments(
                stack.enter_context(replacing(Path(path))),
                (chosen.get(index, set()) for index in range(sentences)),
            )
        publish(document, _report(scores, len(common), left_out), args.json)
    for name, way, path in args.output:
        announce(path, f"links of {sentences} sentences, {name} {way}", sys.stderr)


def _read(args: argparse.Namespace) -> dict[tuple[str, str], list[WordAlignment | None]]:
    """Read every output, by its name and direction."""
    outputs: dict[tuple[str, str], list[WordAlignment | None]] = {}
    for direction in _DIRECTIONS:
        for name, path in getattr(args, direction):
            if (name, direction) in outputs:
                raise DataError(f"--{direction} {name}: give each name once")
            backward = direction == "backward"
            for topic, alignments in read_word_alignments(
                path, args.subword_marks, backward
            ).items():
                outputs[name if topic is None else f"{name} {topic.name}", direction] = alignments
    return outputs


def _read_gold(
    args: argparse.Namespace, sentences: int, common: Mapping[int, Sequence[WordAlignment]]
) -> tuple[list[set[Link]], list[set[Link]]]:
    """Read the sure and the possible links of the common sentences."""
    sure, possible = read_alignments(args.gold, args.one_based)
    if len(sure) != sentences:
        raise DataError(f"{args.gold}: {len(sure)} lines, but {sentences} decoded sentences")
    for index, alignments in common.items():
        try:
            for alignment in alignments:
                alignment.check_gold(sure[index] | possible[index])
        except DataError as error:
            raise DataError(f"{args.gold}:{index + 1}: {error}") from None
    printed = (alignment.links for alignments in common.values() for alignment in alignments)
    if warning := say_one_based((sure, possible), printed):
        print(f"warning: {args.gold}: {warning}", file=sys.stderr)
    return [sure[index] for index in common], [possible[index] for index in common]


def _list_ways(links: Links, name: str) -> list[str]:
    """List the directions of a system and, if it has both, the ways to symmetrise them."""
    ways = [direction for direction in _DIRECTIONS if (name, direction) in links]
    return [*ways, *SYMMETRISATIONS] if len(ways) == 2 else ways


def _combine(links: Links, name: str, way: str) -> list[set[Link]]:
    if way in _DIRECTIONS:
        return links[name, way]
    forward, backward = (links[name, direction] for direction in _DIRECTIONS)
    pairs = zip(forward, tqdm(backward, f"{name} {way}", disable=None, leave=False), strict=True)
    return [SYMMETRISATIONS[way](*pair) for pair in pairs]


def _score(links: Links, sure: Sequence[set[Link]], possible: Sequence[set[Link]]) -> Scores:
    scores: Scores = {}
    for name in dict.fromkeys(name for name, _ in links):
        scores[name] = {}
        for way in _list_ways(links, name):
            hypothesis = _combine(links, name, way)
            score = alignment_error_rate(sure, possible, hypothesis)
            scores[name][way] = {**vars(score), "links": sum(map(len, hypothesis))}
    return scores


def _report(scores: Scores, sentences: int, left_out: int) -> str:
    rows = [["alignment", "AER", "precision", "recall", "links"]]
    for name, ways in scores.items():
        for way, score in ways.items():
            percent = (f"{100 * score[part]:.2f}" for part in ("aer", "precision", "recall"))
            rows.append([f"{name} {way}", *percent, str(score["links"])])
    parts = []
    if scores:
        parts.append(
            f"{format_table(rows)}\n\nAER, precision and recall in %, over {sentences} sentences"
        )
    if left_out:
        parts.append(
            f"left out: {left_out} of {sentences + left_out} sentences, where an unknown subword "
            "hides where words begin"
        )
    return "\n".join(parts)


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
    parser.add_argument(
        "--forward",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "FILE"),
        help="output of a model from source to target, or a Pharaoh file such as fast_align's: "
        "i-j, source-target, 0-based; repeat for each system",
    )
    parser.add_argument(
        "--backward",
        nargs=2,
        action="append",
        default=[],
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
