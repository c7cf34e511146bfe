"""The Moses tokenizer, which is an extra."""

from __future__ import annotations

from typing import Any

from ..base.errors import DataError

#: Languages of our recipes that Moses has no rules for: it treats them as English, rightly so.
AS_ENGLISH = ("tr",)


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
    """Check that a language is one for the Moses tokenizer: sacremoses takes English for others.

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
