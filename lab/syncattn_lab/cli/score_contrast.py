"""``syncattn-score contrast``: test whether models prefer right translations to wrong ones."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from tqdm import tqdm

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.loggers import hushed
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import (
    add_model_files,
    add_tokenised,
    new_parser,
    positive,
    publish,
    warn_of_unknown,
)

from .models import open_model


@hushed("fairseq.tasks", "fairseq.data")
def run(argv: Sequence[str]) -> None:
    """Score contrastive pairs with each model, and print the accuracy of each."""
    args = make_parser().parse_args(argv)
    from syncattn_fairseq.base.errors import naming
    from syncattn_fairseq.inference import Decoding

    from ..evaluation.contrastive import judge_pairs, read_contrastive, score_contrastive
    from ..evaluation.group_scores import check_baseline
    from ..evaluation.group_tables import describe_groups, tabulate_groups
    from ..evaluation.tables import Tables

    names = [name for name, _ in args.model]
    if len({*names}) < len(names):
        raise DataError("--model: give each name once")
    check_baseline(args.baseline, names)
    pairs = read_contrastive(args.pairs)
    decoding = Decoding(batch_size=args.batch_size)
    verdicts = {}
    for name, path in args.model:
        model = open_model(args, path)
        with (
            naming(f"--model {name}"),
            tqdm(total=len(pairs), desc=name, unit="pair", leave=False, disable=None) as bar,
        ):
            verdicts[name] = judge_pairs(
                pairs,
                partial(model.score, decoding=decoding),
                bar.update,
            )
        warn_of_unknown(model)
    scores = score_contrastive(pairs, verdicts, args.baseline)
    notes = [
        "accuracy: percentage of the pairs whose right translation is more probable than every "
        "wrong translation; probabilities are of whole translations",
        *describe_groups(scores, args.baseline),
    ]
    document = {"contrast": [asdict(score) for score in scores]}
    table = Tables(tabulate_groups(scores, "pairs"), notes).format(args.markdown)
    publish(document, table, args.json)


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-score contrast",
        "Ask models which of two translations is more probable, a right one or one with an error, "
        "by the kind of the error and its distance. Nothing is translated.",
        example="syncattn-score contrast words/test.contrast.tsv --tokenised \\\n"
        "--model SyncAttn checkpoints/demo/checkpoint_best.pt",
    )
    parser.add_argument(
        "pairs",
        help="file with source, right translation, wrong translation and, if they are known, "
        "kind and distance of the error, in columns between tabs; or the .json of LingEval97 or "
        "of ContraPro",
    )
    parser.add_argument(
        "--model",
        action="append",
        nargs=2,
        required=True,
        metavar=("NAME", "MODEL"),
        help="NAME of a system in the table, and its MODEL: a checkpoint, several checkpoints "
        "separated by ':' (an ensemble), or the folder of an exported model; give the option "
        "once for each system",
    )
    parser.add_argument(
        "--baseline",
        metavar="NAME",
        help="NAME of the system that all others are compared with, by a test of significance "
        "(default: no test)",
    )
    parser.add_argument(
        "--batch-size",
        type=positive,
        default=32,
        help="number of translations scored at a time (default: 32)",
    )
    add_model_files(parser)
    add_tokenised(parser)
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="JSON file to write with all numbers; '-' prints them in place of the table",
    )
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.name_files(inputs=["pairs"], outputs=["json"], files=["model"])
    return parser
