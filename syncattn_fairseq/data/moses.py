"""The Moses tokenizer, which is an extra."""

from __future__ import annotations

from typing import Any

from ..base.errors import DataError


def load_sacremoses() -> Any:
    """Return the module that has the Moses tokenizer.

    Raises:
        DataError: it is not installed.
    """
    try:
        import sacremoses
    except ImportError:
        raise DataError(
            "the Moses tokenizer needs sacremoses; pip install 'syncattn-fairseq[moses]'"
        ) from None
    return sacremoses
