"""``syncattn-score trees``: score trees, given or induced from distances, against gold trees."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from syncattn_fairseq.base.errors import DataError, naming
from syncattn_fairseq.base.text_tables import format_table
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import new_parser, publish
from syncattn_fairseq.trees.binary import (
    branch_left,
    branch_right,
    split_at_random,
    split_in_the_middle,
)
from syncattn_fairseq.trees.brackets import read_trees, remove_binarisation
from syncattn_fairseq.trees.tree import Tree

from ..evaluation.bracketing import BracketingScore, score_trees
from ..evaluation.induction import induce_tree
from ..printed.sentences import PrintedSide

#: Random seed of the random trees.
SEED = 1


def run(argv: Sequence[str]) -> None:
    """Score phrase structure trees against gold trees, beside trivial baselines."""
    args = make_parser().parse_args(argv)
    gold = list(read_trees(args.gold))
    if not any(gold):
        raise DataError(f"{args.gold}: has no gold tree; give one tree on each line")
    if args.debinarise:
        gold = [tree and remove_binarisation(tree) for tree in gold]
    systems: dict[str, BracketingScore] = {}
    for name, path in args.system:
        for part, trees in _read_system(path, args.side, gold).items():
            full_name = f"{name} {part}".strip()
            if full_name in systems:
                raise DataError(f"--system {name}: give each name once")
            systems[full_name] = score_trees(trees, gold, path)
    baselines = {}
    for name, build in _list_baselines().items():
        trees = [tree and build(list(tree.leaves())) for tree in gold]
        baselines[name] = score_trees(trees, gold)
    document = {
        "systems": {name: score.as_dict() for name, score in systems.items()},
        "baselines": {name: score.as_dict() for name, score in baselines.items()},
    }
    publish(document, _format_table(systems, baselines), args.json)


def _read_system(
    path: str, name: str, gold: Sequence[Tree | None]
) -> dict[str, Sequence[Tree | None]]:
    """Return the trees of a file by name: ``""``, or the layer of the trees' distances.

    Args:
        path: a file of trees in brackets, or the output of ``syncattn-translate --jsonl``.
        name: the text whose distances induce trees, ``source`` or ``target``.
        gold: the gold trees, which have the words.
    """
    from ..printed.output import has_analyses, read_output  # imports numpy

    if not has_analyses(path):
        return {"": list(read_trees(path))}
    sides: list[PrintedSide] = [getattr(sentence, name) for sentence in read_output(path)]
    layers = sorted({layer for side in sides for layer in side.distances})
    if not layers:
        raise DataError(
            f"{path}: has no syntactic distances of the {name}; only LPSI models have distances"
        )
    if len(sides) != len(gold):
        raise DataError(f"{path}: has {len(sides)} sentences, but there are {len(gold)} gold trees")
    induced: dict[str, Sequence[Tree | None]] = {}
    for layer in layers:
        trees: list[Tree | None] = []
        for number, (side, truth) in enumerate(zip(sides, gold, strict=True), 1):
            with naming(f"{path}: sentence {number}"):
                words = [*truth.leaves()] if truth else None
                trees.append(induce_tree(side, layer, words) if truth else None)
        induced[f"layer {layer}"] = trees
    return induced


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
        f"evalb: brackets of all {counted.sentences} sentences ({counted.words} words) are "
        "counted together, including those of whole sentences and single words; with punctuation",
        f"sentence F1: mean over the {len(counted.each)} sentences of two words or more; each "
        "span of several words counts once, except that of the whole sentence; without "
        "punctuation",
        "both: without labels and parts of speech",
        f"random: every split drawn uniformly, seed {SEED}",
    ]
    if counted.left_out:
        notes.append(f"{counted.left_out} sentences without a gold tree left out")
    return "\n".join([format_table(rows), "", *notes])


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-score trees",
        "Compare trees with gold trees, without labels. Each file has one tree per line in the "
        "brackets of the Penn Treebank. Every bracket has a label, even if it is a dummy, and "
        "every word is in a bracket of its own: (X (X the) (X man)). Trivial trees are scored "
        "beside them.",
        example="syncattn-score trees --gold words/test.trees.de --system LPSI forced.jsonl",
    )
    parser.add_argument(
        "--gold",
        required=True,
        metavar="FILE",
        help="gold trees, one on each line; an empty line or (()) leaves the sentence out",
    )
    parser.add_argument(
        "--debinarise",
        action="store_true",
        help="remove the brackets that binarisation added to the gold trees, whose labels begin "
        "with @; their children stay",
    )
    parser.add_argument(
        "--system",
        required=True,
        action="append",
        nargs=2,
        metavar=("NAME", "FILE"),
        help="NAME of a system, and FILE with its trees over the words of the gold trees, or "
        "with output of syncattn-translate --jsonl: LPSI's syntactic distances between adjacent "
        "words then make a tree for each layer; give the option once for each system",
    )
    parser.add_argument(
        "--side",
        choices=("source", "target"),
        default="target",
        help="with output of syncattn-translate --jsonl in --system: side whose distances induce "
        "trees (default: target)",
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="JSON file to write with all numbers; '-' prints them in place of the table",
    )
    parser.name_files(inputs=["gold", "system"], outputs=["json"])
    return parser
