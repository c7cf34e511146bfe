"""``syncattn-score heads``: score every attention head of models as a parser, beside controls."""

from collections.abc import Sequence

from syncattn_fairseq.base.loggers import hushed
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import new_parser, publish


@hushed("fairseq.tasks", "fairseq.data")
def run(argv: Sequence[str]) -> None:
    """Score the attention heads of checkpoints as dependency parsers, and print a table."""
    args = make_parser().parse_args(argv)
    from ..evaluation.head_probe import Probe  # imports fairseq
    from ..evaluation.head_tables import choose_strongest, describe_heads, format_models

    given = {"source": args.source_labels, "target": args.target_labels}
    labels = {side: path for side, path in given.items() if path}
    probe = Probe(args.data, args.split, labels)
    models = {}
    for path in dict.fromkeys(args.checkpoints):
        model = probe.probe(path)
        models[path] = model, choose_strongest(model)
    document = {path: describe_heads(*found) for path, found in models.items()}
    publish({"checkpoints": document}, format_models(models, args.markdown), args.json)


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-score heads",
        "Score each attention head of each layer as a parser, whether or not it was trained to "
        "parse: by UAS and, with labels, by the recall of each label, beside parses that know no "
        "syntax. A second table has the strongest head for each label, chosen on one half of the "
        "sentences and scored on the other. A word's last subword stands for it.",
        example="syncattn-score heads data-bin/demo checkpoints/demo/checkpoint_best.pt \\\n"
        "--source-labels words/test.labels.en --target-labels words/test.labels.de",
    )
    parser.add_argument("data", help="folder of the binarised text, with heads")
    parser.add_argument(
        "checkpoints", nargs="+", help="checkpoints of Transformers, syntactic or plain"
    )
    parser.add_argument(
        "--split", default="test", help="split of the text to score (default: test)"
    )
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-labels",
            metavar="FILE",
            help=f"gold dependency labels of the {side}, a line for each sentence of that part",
        )
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="JSON file to write with all numbers; '-' prints them in place of the table",
    )
    parser.name_files(inputs=["checkpoints", "source_labels", "target_labels"], outputs=["json"])
    return parser
