"""The Moses tokenizer, an optional dependency."""

import re
from collections.abc import Callable
from typing import Any

from ..base.errors import DataError

#: Languages of our recipes without rules in Moses: treating them as English, as it does, is right.
AS_ENGLISH = ("tr",)


def load_sacremoses() -> Any:
    """Import sacremoses, which has the Moses tokenizer; `DataError` if it is not installed."""
    try:
        import sacremoses
    except ImportError:
        raise DataError(
            "the Moses tokenizer needs sacremoses; pip install 'syncattn-fairseq[moses]'"
        ) from None
    return sacremoses


def check_language(language: str) -> None:
    """Raise `DataError` unless Moses knows a language: sacremoses would silently use English."""
    load_sacremoses()
    from sacremoses.corpus import NonbreakingPrefixes

    known = sorted({code for code in NonbreakingPrefixes().available_langs.values()})
    if language not in (*known, *AS_ENGLISH):
        raise DataError(
            f"the Moses tokenizer does not know {language!r}; it knows {' '.join(known)}"
        )


#: Turkish case endings and the like, which an apostrophe separates from names and numbers.
_ENDINGS = (
    "(?!dedi|diye|ile|ise)(?:[yns]?[ae]|[yns]?[ıiuü]|[yn]?[dt][aeıiuü][nrmk]?|[nyms]?[ıiuü][nmz]|l[aeıiuü]"
    "[rknz]?|l[ae]|yl[ae]|n?c[aeıiuü]|ki|m[ıiuü]ş|ş?[ae]r|s[ıiuü]z|k[ae]n|nc[ıiuü]|t)+"
)
#: Where the detokeniser must leave no space, and where it must leave one.
_GLUE, _GAP = "\ue000", "\ue001"
_BOTH, _LEFT, _RIGHT = rf"\1\2{_GLUE} ", rf"\1\2{_GAP} ", rf"\1 \2{_GLUE} "
#: What the tokenizer takes apart and its detokeniser does not put together, in text between spaces.
_APART = {
    "": (  # where every apostrophe is separated: O'Brien, d'Ivoire, McDonald's
        ("(?<!\\S)([DLOdl]) (['’]) (?=[^\\W\\d_])", _BOTH),
        ("([^\\W_]) (['’]) (?=s(?!\\S))", _BOTH),
    ),
    "ro": (("(\\S|^) ([„«]) ", _RIGHT), ("(\\S) ([”»]) ", _LEFT)),
    "tr": (
        (f"(?<!\\S)(\\S*[A-ZÇĞİÖŞÜÂÎÛ0-9]\\S*) (['’]) (?={_ENDINGS}(?!\\S))", _BOTH),
        ("(\\S|^) (“) ", _RIGHT),
        ("(\\S) (”) ", _LEFT),
    ),
}


def open_detokenizer(language: str) -> Callable[[str], str]:
    """Return what undoes the Moses tokenizer in a line of words; errors as `check_language`.

    Apostrophes are put back as the language has them: Moses's own detokeniser takes those of most
    languages for quotation marks.
    """
    check_language(language)
    detokenizer = load_sacremoses().MosesDetokenizer(language)
    general = () if language in ("en", "fr", "it") else _APART[""]
    rules = [(re.compile(p), joined) for p, joined in (*_APART.get(language, ()), *general)]

    def detokenize(words: str) -> str:
        text = f" {' '.join(words.split())} "
        for pattern, joined in rules:
            text = pattern.sub(joined, text)
        plain: str = detokenizer.detokenize(text.split())
        return plain.replace(f"{_GLUE} ", "").replace(_GLUE, "").replace(_GAP, "")

    return detokenize


def lower_case(text: str, language: str) -> str:
    """Return a text in a language's lower case: Turkish and Azeri have an i without a dot."""
    if re.split("[-_]", language)[0] in ("tr", "az"):
        text = text.replace("I\u0307", "i").replace("I", "ı").replace("İ", "i")
    return text.lower()
