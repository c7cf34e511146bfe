"""``syncattn-serve``: serve a model over HTTP, with a page to type in."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from ..base.extras import require
from ..base.numbers import read_whole
from .command_line import CommandLine
from .common import add_model_files, add_tokenised, command, new_parser, positive, read_subwords


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Serve until the program is told to end."""
    args = make_parser().parse_args(argv)
    require("serve", "starlette", "uvicorn")
    from ..inference import load
    from ..serving import Limits, bind, serve

    taken = bind(args.host, args.port)
    model = load(
        args.path,
        args.data_bin,
        read_subwords(args),
        args.source_parser,
        args.device,
        args.user_dir,
        tokenised=args.tokenised,
    )
    serve(model, taken, Limits(args.max_requests, args.max_seconds, args.max_bytes))


def _port(value: str) -> int:
    try:
        number = read_whole(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{number} is not between 0 and 65535")
    return number


def make_parser() -> CommandLine:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "syncattn-serve",
        "Serve a model over HTTP: a page to type in, and translations, parses, links and pictures "
        "as JSON. It needs the extra serve. There is no encryption and no password: put a web "
        "server in front of it if others than you can reach it.",
        example="syncattn-serve --path exported",
    )
    parser.add_argument(
        "--path",
        required=True,
        help="a checkpoint, several checkpoints separated by ':' (an ensemble), or the "
        "folder of an exported model",
    )
    add_model_files(parser)
    add_tokenised(parser)
    parser.add_argument("--device", help="cpu or cuda (default: cuda if there is a GPU)")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen at; 0.0.0.0 lets other machines connect (default: 127.0.0.1, "
        "this machine alone)",
    )
    parser.add_argument(
        "--port",
        type=_port,
        default=8000,
        metavar="N",
        help="port to listen at; 0 takes a free one (default: 8000)",
    )
    parser.add_argument(
        "--max-requests",
        type=positive,
        default=64,
        help="most requests that are answered at a time; further ones get status 503 (default: 64)",
    )
    parser.add_argument(
        "--max-seconds", type=positive, default=30, help="most seconds for a request (default: 30)"
    )
    parser.add_argument(
        "--max-bytes",
        type=positive,
        default=100_000,
        help="most bytes of a request (default: 100000)",
    )
    parser.name_files(files=[lambda args: args.path.split(os.pathsep)])
    return parser


if __name__ == "__main__":
    sys.exit(main())
