"""Make fairseq's commands report bad input as ours do: one line on standard error, and status 1.

Fault: all versions end with a traceback, whatever the error.
Test: ``test_one_line.py``.
"""

import signal
import sys
from pathlib import Path
from types import TracebackType

from ..base.errors import DataError, describe, describe_lack_of_memory, printable


def mend() -> None:
    """Let fairseq's commands print errors about input files as a single line, without a traceback.

    Other programs keep their tracebacks.
    """
    if not is_fairseq_command():
        return
    other = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # the second one ends us at once
        line = _line(error)
        if line is None:
            other(kind, error, trace)
        else:
            print(f"error: {printable(line)}", file=sys.stderr)

    sys.excepthook = hook


def is_fairseq_command() -> bool:
    """Return whether this program is one of fairseq's commands."""
    program = Path(sys.argv[0] or ".")
    return program.name.startswith("fairseq-") or program.parent.name == "fairseq_cli"


def _line(error: BaseException) -> str | None:
    """Return the message of an error in the input, None for any other error."""
    if isinstance(error, DataError):
        return str(error)
    if isinstance(error, ValueError) and str(error).startswith("Cannot register"):
        return f"{error}: choose another name"  # in a plugin
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError) and error.filename is not None:
        return describe(error)
    if isinstance(error, AssertionError) and str(error).startswith("--"):  # of its options
        return str(error)
    if isinstance(error, FileNotFoundError):  # fairseq's own, such as "Dataset not found"
        return str(error)
    if line := describe_lack_of_memory(error):
        return line
    if type(error).__name__ == "ProcessRaisedException":  # raised in a GPU's own process
        name, _, line = str(error).strip().rpartition("\n")[2].partition(": ")
        if name.startswith(DataError.__module__):
            return line
    return None
