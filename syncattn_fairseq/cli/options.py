"""``syncattn-options``: show the plugin's additional options for fairseq."""

import argparse
import sys
from collections.abc import Sequence

from ..base.loggers import hushed
from ..base.user_dir import import_user_dir
from .common import add_user_dir, command, new_parser


@command
@hushed("fairseq")  # it advertises missing packages
def main(argv: Sequence[str] | None = None) -> None:
    """Print the architectures, or the options of an architecture."""
    args = make_parser().parse_args(argv)
    from .plugin_options import format_architectures, format_options  # imports fairseq: seconds

    if args.user_dir:
        import_user_dir(args.user_dir)
    print(format_options(args.architecture) if args.architecture else format_architectures())


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-options",
        "Show the options that this plugin adds to those of fairseq-train, fairseq-generate and "
        "fairseq-interactive; their own --help does not show them.",
        example="syncattn-options transformer_syncattn",
    )
    parser.add_argument(
        "architecture",
        nargs="?",
        metavar="ARCH",
        help="architecture whose options and defaults to print (default: print the list of "
        "architectures)",
    )
    add_user_dir(parser, "show its kinds of heads and losses, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
