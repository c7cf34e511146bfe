"""``syncattn-score heads``: score every self-attention head of models as a parser."""

from collections.abc import Sequence

from syncattn_fairseq.base.loggers import hushed
from syncattn_fairseq.base.text_tables import format_table
from syncattn_fairseq.cli.command_line import CommandLine
from syncattn_fairseq.cli.common import new_parser, publish


@hushed("fairseq.tasks", "fairseq.data")
def run(argv: Sequence[str]) -> None:
    """Score the heads."""
    from ..evaluation.attachment_baselines import describe_baselines
    from ..evaluation.head_probe import Probe, choose_best  # imports fairseq

    args = make_parser().parse_args(argv)
    probe = Probe(args.data, args.split)
    rows = [["checkpoint", "side", "rows", "best head", "UAS"]]
    document = {}
    for path in args.checkpoints:
        heads = probe.probe(path)
        for head in choose_best(heads):
            rows.append([path, head.side, head.rows, head.name, f"{100 * head.uas:.1f}"])
        document[path] = [
            {"side": head.side, "head": head.name, "rows": head.rows, "uas": head.uas}
            for head in heads
        ]
    baselines = probe.score_baselines(args.checkpoints[0])
    notes = [
        f"UAS {side} of parses that know no syntax: {describe_baselines(scores)}"
        for side, scores in baselines.items()
    ]
    notes.append("the best head is chosen on this very text, so its UAS is somewhat too high")
    notes.append("on the target, only words whose parent is the root or to their left count")
    known = {
        side: {name: score.as_dict() for name, score in scores.items()}
        for side, scores in baselines.items()
    }
    table = "\n".join([format_table(rows), "", *notes])
    publish({"checkpoints": document, "baselines": known}, table, args.json)


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-score heads",
        "Find the self-attention head of each model that looks at parents most often, whether or "
        "not it was trained to. A word's last subword stands for it.",
        example="syncattn-score heads data-bin/demo checkpoints/demo/checkpoint_best.pt",
    )
    parser.add_argument("data", help="the binarised text, with heads")
    parser.add_argument("checkpoints", nargs="+", help="checkpoints of Transformers")
    parser.add_argument("--split", default="test", help="the part that is parsed (default: test)")
    parser.add_argument("--json", metavar="FILE", help="write all numbers; -: instead of the table")
    parser.name_files(inputs=["checkpoints"], outputs=["json"])
    return parser
