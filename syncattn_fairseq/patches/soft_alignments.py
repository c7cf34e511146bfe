"""Print soft alignments (``--print-alignment soft``) in ``fairseq-interactive``, too.

Fault: all versions take them for pairs there, and end with a traceback after the first sentence;
``fairseq-generate`` prints them.
Test: ``test_unknown_words.py``.
"""

import sys
from typing import Any

from .wrapping import reword


def mend() -> None:
    """Make ``fairseq-interactive`` print soft alignments as ``fairseq-generate`` does."""
    interactive = sys.modules.get("fairseq_cli.interactive")
    if interactive is not None:  # it sets up the log when it is imported
        pairs = '["{}-{}".format(src, tgt) for src, tgt in alignment]'
        reword(interactive, "main", {pairs: "_format_links(alignment)"}, _format_links=format_links)


def format_links(alignment: Any) -> list[str]:
    """Return an alignment as texts: ``SOURCE-TARGET`` for each link, or rows of probabilities."""
    if all(isinstance(row, tuple) for row in alignment):
        return [f"{source}-{target}" for source, target in alignment]
    return [",".join(row) for row in alignment]
