"""Keep fairseq from running its options as code.

Fault: all versions read some options with ``eval``, and options may come from a checkpoint.
Test: ``test_small_patches.py``.
"""

import sys

from ..base.literals import evaluate


def mend() -> None:
    """Replace ``eval`` in fairseq's modules by a function that evaluates only literals."""
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] == "fairseq":
            vars(module)["eval"] = evaluate
