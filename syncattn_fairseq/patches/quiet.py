"""Suppress harmless messages of fairseq's commands that look like failures.

Fault: all versions call hydra in ways that hydra 1.1 and later warn of, in 20 lines, and show its
debugging; PyTorch warns of what fairseq passes to it; the commands that translate print all options
of all commands, in a line of 9,000 characters. ``fairseq-train`` keeps its line,
by which a log shows how a model was trained.
Test: ``test_quiet.py``.
"""

import logging
import sys
import warnings

from .one_line import is_fairseq_command

_HYDRA = (
    r"\n(The version_base parameter|'config' is validated against|The strict flag)|"
    r"In 'config': Usage of deprecated keyword|hydra\.experimental\.\w+\(\) is no longer"
)
_TORCH = (
    "'pin_memory' argument is set as true but no accelerator|"
    r"`torch\.cuda\.amp\.autocast|Support for mismatched key_padding_mask"
)
_TRANSLATING = ("fairseq_cli.generate", "fairseq_cli.interactive", "fairseq_cli.validate")


def mend() -> None:
    """Hide harmless warnings and log lines of fairseq's commands, except with Python's ``-W``."""
    if not is_fairseq_command() or sys.warnoptions:
        return
    for message in (_HYDRA, _TORCH):
        for category in (UserWarning, FutureWarning):
            warnings.filterwarnings("ignore", message, category)
    logging.getLogger("hydra").setLevel(logging.INFO)
    for name in _TRANSLATING:
        logging.getLogger(name).addFilter(_is_no_config)


def _is_no_config(record: logging.LogRecord) -> bool:
    """Return whether a log record is a text, and not an object with all options."""
    return isinstance(record.msg, str)
