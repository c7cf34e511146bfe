"""Run fast_align on a corpus, if it is installed.

``python -m syncattn_fairseq.lab.cli.fast_align --words corpora/C/words --languages de en`` writes
``fast_align.forward`` and ``fast_align.backward`` there, the links of the test set.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ...cli.common import command
from ..recipes.aligner import PROGRAM, align, list_outputs


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the program, or say that it is not installed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--words", type=Path, required=True, metavar="DIR")
    parser.add_argument("--languages", nargs=2, required=True, metavar=("SRC", "TGT"))
    args = parser.parse_args(argv)
    if shutil.which(PROGRAM) is None:
        print(f"{PROGRAM}: no such program; the table will not have its AER")
        return
    align(args.words, args.languages)
    print(", ".join(map(str, list_outputs(args.words))))


if __name__ == "__main__":
    sys.exit(main())
