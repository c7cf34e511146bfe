"""The Moses tokenizer, an optional dependency."""

from __future__ import annotations

from typing import Any

from ..base.errors import DataError

#: Languages of our recipes without rules in Moses: treating them as English, as it does, is right.
AS_ENGLISH = ("tr",)


def load_sacremoses() -> Any:
    """Import sacremoses, which has the Moses tokenizer.

    Raises:
        DataError: sacremoses is not installed.
    """
    try:
        import sacremoses
    except ImportError:
        raise DataError(
            "the Moses tokenizer needs sacremoses; pip install 'syncattn-fairseq[moses]'"
        ) from None
    return sacremoses


def check_language(language: str) -> None:
    """Check that the Moses tokenizer knows a language: sacremoses would silently use English.

    Raises:
        DataError: it does not, or sacremoses is not installed.
    """
    load_sacremoses()
    from sacremoses.corpus import NonbreakingPrefixes

    known = sorted({code for code in NonbreakingPrefixes().available_langs.values()})
    if language not in (*known, *AS_ENGLISH):
        raise DataError(
            f"the Moses tokenizer does not know {language!r}; it knows {' '.join(known)}"
        )
