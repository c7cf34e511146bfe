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


def check_language(language: str) -> None:
    """Check that the Moses tokenizer knows a language: sacremoses takes English for all others.

    Raises:
        DataError: it does not, or sacremoses is not installed.
    """
    load_sacremoses()
    from sacremoses.corpus import NonbreakingPrefixes

    known = sorted({code for code in NonbreakingPrefixes().available_langs.values()})
    if language not in known:
        raise DataError(
            f"the Moses tokenizer does not know {language!r}; it knows {' '.join(known)}"
        )
