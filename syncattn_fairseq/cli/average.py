"""``syncattn-average``: average several checkpoints into a single checkpoint for decoding."""

import sys
from collections.abc import Sequence

from ..base.clashes import check_files
from .command_line import CommandLine
from .common import command, new_parser, positive


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Average the checkpoints that are named, or the newest checkpoints of a folder."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if bool(args.checkpoints) == bool(args.last):
        parser.error("name the checkpoints to average, or give --last N and --dir")
    if bool(args.last) != bool(args.dir):
        parser.error("--last and --dir go together")
    from .. import plugin  # noqa: F401  (knows the models' options; imports torch, which is slow)
    from ..checkpoints.averaging import average_checkpoints, find_last_checkpoints

    paths = args.checkpoints or find_last_checkpoints(args.dir, args.last, args.by)
    check_files(files=paths, outputs=[args.output])
    updates = average_checkpoints(paths, args.output)
    print(
        f"{args.output}: the mean of {len(paths)} checkpoints (updates "
        f"{', '.join(map(str, updates))}), without optimizer state: for decoding, not for "
        "resuming a training"
    )


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-average",
        "Average the parameters of fairseq checkpoints.",
        example="syncattn-average --last 5 --dir checkpoints --output average.pt",
    )
    parser.add_argument(
        "checkpoints",
        nargs="*",
        help="files of the checkpoints to average; or give --last and --dir",
    )
    parser.add_argument(
        "--output", required=True, help="file to write with the averaged checkpoint"
    )
    parser.add_argument(
        "--last", type=positive, help="with --dir: average the N newest checkpoints of that folder"
    )
    parser.add_argument(
        "--dir", help="with --last: folder of the checkpoints, which is fairseq's --save-dir"
    )
    parser.add_argument(
        "--by",
        choices=["epoch", "update"],
        default="epoch",
        help="with --last: which checkpoints to average, those saved after an epoch "
        "(checkpointE.pt) or those saved after a number of updates (checkpoint_E_U.pt) (default: "
        "epoch)",
    )
    parser.name_files(outputs=["output"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
