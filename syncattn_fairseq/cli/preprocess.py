"""``syncattn-preprocess``: ``fairseq-preprocess`` that also binarises heads and labels."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .common import command, new_parser
from .preprocess_options import add_options

DESCRIPTION = """\
Binarise texts as fairseq-preprocess does, together with their heads and labels. All options of
fairseq-preprocess work here too (fairseq-preprocess --help): -s, -t, --trainpref, --validpref,
--testpref, --destdir, --joined-dictionary, --srcdict, --workers and so on.
"""

EXAMPLE = """\
syncattn-preprocess -s en -t de --joined-dictionary --destdir data-bin \\
--trainpref pieces/train --trainheads words/train \\
--validpref pieces/valid --validheads words/valid --testpref pieces/test"""


@command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    words = list(sys.argv[1:] if argv is None else argv)
    if {"-h", "--help", "--version"} & set(words):  # importing fairseq would take seconds
        parser = new_parser("syncattn-preprocess", DESCRIPTION, EXAMPLE)
        add_options(parser)
        parser.parse_args(words)
    from .preprocessing import preprocess_texts

    preprocess_texts(words)


if __name__ == "__main__":
    sys.exit(main())
