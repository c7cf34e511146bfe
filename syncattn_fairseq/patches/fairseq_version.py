"""Say in one line that the installed fairseq does not work.

Fault: fairseq 0.12.2 cannot be imported on Python 3.11 and later: its dataclasses have mutable
defaults. Needed as long as pip can install such a version.
Test: ``test_fairseq_version.py``.
"""

from __future__ import annotations

import importlib
import logging
import sys

FAIRSEQ = "fairseq-fixed==0.12.3.1"


def require_fairseq() -> None:
    """Import fairseq; fail with one clear line if the installed version does not work.

    The official release, 0.12.2, is accepted where it works: on Python 3.10.

    Raises:
        ImportError: fairseq is missing, or cannot be imported.
    """
    # On import, fairseq recommends a speech package, which a translation program does not need.
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    try:
        importlib.import_module("fairseq.models.transformer")
    except Exception as error:
        version = ".".join(map(str, sys.version_info[:2]))
        raise ImportError(
            f"the installed fairseq does not work on Python {version} "
            f"({type(error).__name__}: {error}); install {FAIRSEQ} instead"
        ) from error
