"""Import fairseq; if fairseq is missing or does not work, report the fault in one line.

Fault: fairseq 0.12.2 cannot be imported on Python 3.11 and later: its dataclasses have mutable
defaults. fairseq-fixed 0.12.3.1 can, but on Python 3.14 it does not understand its own options.
fairseq-pure (docs/install.md) works on all of them.
Needed as long as pip can install such a version.

Fault: all versions but fairseq-pure set the root logger to DEBUG when they are imported
(wav2vec2_classification), so that every library of the program that loads a model logs all it can.
Test: ``test_fairseq_version.py``.
"""

import importlib
import logging
import sys
from typing import Any, Optional

from ..base.extras import describe_missing
from ..base.loggers import keeping_root

INSTEAD = "uninstall it, then pip install fairseq-pure"
MISSING = describe_missing("train", "fairseq")


def mend() -> None:
    """Import fairseq; raise `ImportError` with a clear one-line reason if the import fails."""
    # On import, fairseq recommends a speech package, which a translation program does not need.
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    try:
        with keeping_root():
            importlib.import_module("fairseq.models.transformer")
            utils: Any = importlib.import_module("fairseq.dataclass.utils")
        if utils.interpret_dc_type(Optional[int]) is not int:  # noqa: UP045
            raise TypeError("this fairseq does not support options that may be None")
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name
        if missing == "fairseq":
            raise ImportError(MISSING, name="fairseq") from None
        version = ".".join(map(str, sys.version_info[:2]))
        remedy = f"pip install {missing}" if missing else INSTEAD
        raise ImportError(
            f"the installed fairseq does not work on Python {version} "
            f"({type(error).__name__}: {error}); {remedy}",
            name="fairseq",
        ) from error
