"""``syncattn-options``: the options that the plugin adds to fairseq's."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from .common import command, new_parser


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    args = _parser().parse_args(argv)
    logging.getLogger("fairseq").setLevel(logging.WARNING)  # it advertises what is not installed
    from .plugin_options import format_architectures, format_options  # fairseq, which takes seconds

    if args.user_dir:
        from fairseq.utils import import_user_module

        import_user_module(args)
    print(format_options(args.architecture) if args.architecture else format_architectures())


def _parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "syncattn-options",
        "Show the options that this plugin adds to those of fairseq-train, fairseq-generate and "
        "fairseq-interactive, whose own --help does not show them.",
        example="syncattn-options transformer_syncattn",
    )
    parser.add_argument(
        "architecture",
        nargs="?",
        metavar="ARCH",
        help="show its options, with its defaults; without a name, list all architectures",
    )
    parser.add_argument(
        "--user-dir",
        type=Path,
        metavar="DIR",
        help="a plugin of your own, whose kinds of heads and losses are shown too",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
