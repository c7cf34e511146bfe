"""``syncattn-trees``: make trees from printed syntactic distances; score the brackets of trees."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.files import replacing
from syncattn_fairseq.base.text import read_lines
from syncattn_fairseq.base.text_tables import format_table
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import (
    add_command,
    add_subword_marks,
    command,
    new_parser,
    positive,
    publish,
)
from syncattn_fairseq.data.words import detect_scheme
from syncattn_fairseq.trees.binary import (
    branch_left,
    branch_right,
    split_at_random,
    split_in_the_middle,
)
from syncattn_fairseq.trees.brackets import read_trees, remove_binarisation
from syncattn_fairseq.trees.tree import Tree

from ..evaluation.bracketing import BracketingScore, score_trees
from ..evaluation.induction import PRINTED_SIDES, induce_tree
from ..printed.decoded import read_decoded

#: Of the random trees.
SEED = 1
INDUCE = "syncattn-trees induce --decoded forced.txt --text words/test.de --output trees.de"


def _parser() -> CommandLine:
    parser = new_parser(
        "syncattn-trees",
        "Make trees from the syntactic distances that a model printed, and score trees against "
        "gold trees; it parses no text itself.",
        example=INDUCE,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    inducing = add_command(
        commands,
        "induce",
        "Make binary trees from the syntactic distances that a model printed with fairseq-generate "
        "--score-reference --print-distances, without --remove-bpe.",
        example=INDUCE,
    )
    inducing.add_argument("--decoded", required=True, metavar="FILE", help="the printed output")
    inducing.add_argument(
        "--side",
        choices=PRINTED_SIDES,
        default="hypothesis",
        help="side to make trees for (default: hypothesis)",
    )
    inducing.add_argument(
        "--layer", type=positive, help="layer of the distances, from 1 (default: the highest)"
    )
    inducing.add_argument(
        "--text",
        metavar="FILE",
        help="words of that side, one sentence per line, to restore words unknown to the model",
    )
    add_subword_marks(inducing)
    inducing.add_argument("--output", required=True, type=Path, help="trees")
    inducing.name_files(inputs=["decoded", "text"], outputs=["output"])
    scoring = add_command(
        commands,
        "score",
        "Compare trees with gold trees, without labels. Each file has one tree per line in the "
        "brackets of the Penn Treebank. Every bracket has a label, even if it is a dummy, and "
        "every word is in a bracket of its own: (X (X the) (X man)).",
        example="syncattn-trees score --gold words/test.trees.de --system LPSI trees.de",
    )
    scoring.add_argument(
        "--gold",
        required=True,
        metavar="FILE",
        help="gold trees; an empty line or (()) leaves the sentence out",
    )
    scoring.add_argument(
        "--debinarise",
        action="store_true",
        help="remove the brackets of the gold trees that binarisation added, whose labels begin "
        "with @; their children stay",
    )
    scoring.add_argument(
        "--system",
        required=True,
        action="append",
        nargs=2,
        metavar=("NAME", "FILE"),
        help="trees over as many words as those of the gold trees; once per system",
    )
    scoring.add_argument("--json", metavar="FILE", help="write all numbers; -: instead of table")
    scoring.name_files(inputs=["gold", "system"], outputs=["json"])
    return parser


def _induce(args: argparse.Namespace) -> None:
    decoded = read_decoded(args.decoded)
    texts = list(read_lines(args.text)) if args.text else [None] * len(decoded)
    if len(texts) != len(decoded):
        raise DataError(f"{args.text}: {len(texts)} lines, but {len(decoded)} decoded sentences")
    scheme = args.subword_marks or detect_scheme(
        text for s in decoded for text in (s.source, s.hypothesis)
    )
    blank = 0
    with replacing(args.output) as path, path.open("w", encoding="utf-8") as file:
        for number, (sentence, text) in enumerate(zip(decoded, texts, strict=True), 1):
            words = None if text is None else text.split()
            with naming(f"{args.decoded}: sentence {number}"):
                tree = induce_tree(sentence, args.side, scheme, args.layer, words)
            blank += tree is None
            file.write(f"{tree or ''}\n")
    print(f"{args.output}: {len(decoded) - blank} trees, {blank} empty lines")


def _score(args: argparse.Namespace) -> None:
    gold = list(read_trees(args.gold))
    if not any(gold):
        raise DataError(f"{args.gold}: no gold tree; give one tree per line")
    if args.debinarise:
        gold = [tree and remove_binarisation(tree) for tree in gold]
    systems: dict[str, BracketingScore] = {}
    for name, path in args.system:
        if name in systems:
            raise DataError(f"--system {name}: give each name once")
        systems[name] = score_trees(list(read_trees(path)), gold, path)
    baselines = {
        name: score_trees([tree and build(list(tree.leaves())) for tree in gold], gold)
        for name, build in _list_baselines().items()
    }
    document = {
        kind: {name: score.as_dict() for name, score in scores.items()}
        for kind, scores in (("systems", systems), ("baselines", baselines))
    }
    publish(document, _format_table(systems, baselines), args.json)


def _list_baselines() -> dict[str, Callable[[Sequence[str]], Tree]]:
    generator = Random(SEED)
    return {
        "left-branching": branch_left,
        "right-branching": branch_right,
        "balanced": split_in_the_middle,
        "random": lambda words: split_at_random(words, generator),
    }


def _format_table(
    systems: Mapping[str, BracketingScore], baselines: Mapping[str, BracketingScore]
) -> str:
    rows = [["system", "evalb P", "evalb R", "evalb F1", "sentence F1"]]
    for name, score in (*systems.items(), *baselines.items()):
        evalb = score.evalb
        fractions = evalb.precision, evalb.recall, evalb.f1, score.mean("f1")
        rows.append([name, *(f"{100 * fraction:.2f}" for fraction in fractions)])
    counted = baselines["random"]
    notes = [
        f"evalb: all brackets of {counted.sentences} sentences ({counted.words} words) "
        "together, including whole sentences and single words; with punctuation",
        f"sentence F1: mean over the {len(counted.each)} sentences of two words or "
        "more; spans of several words but not of all, each once; without punctuation",
        "both: without labels and parts of speech",
        f"random: every split drawn uniformly, seed {SEED}",
    ]
    if counted.left_out:
        notes.append(f"{counted.left_out} sentences without a gold tree left out")
    return "\n".join([format_table(rows), "", *notes])


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Make trees, or score them."""
    args = _parser().parse_args(argv)
    {"induce": _induce, "score": _score}[args.command](args)


if __name__ == "__main__":
    sys.exit(main())
