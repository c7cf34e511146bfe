"""``python -m syncattn_lab.recipes.fetch``: download a file, whole and verified or not at all."""

import argparse
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.files import hash_file
from syncattn_fairseq.cli.common import command, new_parser, positive

from .downloads import MIRRORS, SUMS, fetch


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command's arguments."""
    parser = new_parser(
        "python -m syncattn_lab.recipes.fetch",
        "Download a file unless it is there already. With a checksum, an interrupted download "
        "continues where it stopped. Without, the server has to say how long the file is; the "
        f"checksum of the first download is recorded in DIR/{SUMS}, and later downloads are "
        f"compared with it. Mirrors, base URLs in the environment variable {MIRRORS}, are tried "
        "first, at BASE/HOST/PATH. A download may take five minutes, and longer as long as it has "
        "10 kB per second on average.",
        example="python -m syncattn_lab.recipes.fetch \\\n"
        "https://www.statmt.org/wmt14/test-full.tgz --directory download",
    )
    parser.add_argument("source", metavar="URL", help="URL of the file; with --licence, its name")
    parser.add_argument(
        "--directory", type=Path, required=True, metavar="DIR", help="folder to download into"
    )
    parser.add_argument(
        "--name", metavar="FILE", help="name of the downloaded file (default: that in the URL)"
    )
    for name, digits, what in (("sha256", 64, "its checksum"), ("md5", 32, "its MD5 sum")):
        check = partial(_hexadecimal, digits=digits)
        parser.add_argument(f"--{name}", type=check, metavar="HEX", help=what)
    parser.add_argument(
        "--size",
        type=positive,
        metavar="BYTES",
        help="size of the file in bytes; another size is an error",
    )
    parser.add_argument(
        "--licence",
        metavar="TEXT",
        help="for a file that must be got by hand: how to get it; the command only checks "
        "that the file is there",
    )
    return parser


def _hexadecimal(value: str, digits: int) -> str:
    if not re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", value):
        raise argparse.ArgumentTypeError(f"{value!r} is not {digits} hexadecimal digits")
    return value


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Download a file, or check for the presence of a licensed file."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.licence is not None:
        if args.name or args.sha256 or args.md5 or args.size:
            parser.error("--licence goes with none of --name, --sha256, --md5 and --size")
        path = args.directory / args.source
        if not path.is_file():
            raise DataError(
                f"{path}: missing; it needs a signed licence, so put it there yourself: "
                f"{args.licence}"
            )
    else:
        path = fetch(args.source, args.directory, args.name, args.sha256, args.size, args.md5)
    result = f"{path}: {path.stat().st_size} bytes"
    print(result if args.sha256 else f"{result}, SHA-256 {hash_file(path)}")


if __name__ == "__main__":
    sys.exit(main())
