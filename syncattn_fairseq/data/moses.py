"""The Moses tokenizer, an optional dependency."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from unicodedata import combining

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


#: Turkish case endings and the like, which an apostrophe separates from names and numbers.
_ENDINGS = (
    "(?!dedi|diye|ile|ise)(?:[yns]?[ae]|[yns]?[ıiuü]|[yn]?[dt][aeıiuü][nrmk]?|[nyms]?[ıiuü][nmz]|l[aeıiuü]"
    "[rknz]?|l[ae]|yl[ae]|n?c[aeıiuü]|ki|m[ıiuü]ş|ş?[ae]r|s[ıiuü]z|k[ae]n|nc[ıiuü]|t)+"
)
#: Words that lose their end before a vowel, in French, Italian and Catalan.
_ELIDED = (
    "(?<!\\S)((?:[cdjlmnstCDJLMNST]|[Qq]u|[Ll]orsqu|[Pp]uisqu|[Jj]usqu|[Uu]n|[DdNnSsCc]?[AaEeOoUu]ll|"
    "[Dd]egl|[Qq]uell|[Qq]uest|[Bb]ell|[Ss]ant|[Aa]nch|[Cc]om|[Dd]ov|[Tt]utt|[Gg]rand|[Cc]os))"
)
#: Where the detokeniser must leave no space, and where it must leave one.
_GLUE, _GAP = "\ue000", "\ue001"
_BOTH, _LEFT, _RIGHT = rf"\1\2{_GLUE} ", rf"\1\2{_GAP} ", rf"\1 \2{_GLUE} "
_ROMANCE = (
    (f"{_ELIDED} (['’]) (?=[\\w\"«“])", _BOTH),
    ("(\\S|^) ([«“]) ", _RIGHT),
    ("(\\S) ([»”]) ", _LEFT),
)
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
    "fr": _ROMANCE[:1],
    "it": (*_ROMANCE, ("(?<!\\S)(E|[Pp]o) (') ", _LEFT)),
    "ca": (*_ROMANCE, ("([aeiouàèéíòóú]) (['’]) (?=(?:ls?|n|m|t|s|ns|hi|ho)(?!\\S))", _BOTH)),
}


def open_detokenizer(language: str) -> Callable[[str], str]:
    """Return what undoes the Moses tokenizer in a line of words.

    Apostrophes are put back as the language has them: Moses's own detokeniser takes those of most
    languages for quotation marks.

    Raises:
        DataError: sacremoses is not installed, or does not know the language.
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


_BELOW, _ABOVE = (
    "".join(
        c for c in map(chr, range(0x300, 0x2000)) if (combining(c) == 230) == above and combining(c)
    )
    for above in (False, True)
)
#: Unicode's SpecialCasing.txt: what lower case is in some languages, before Python's own rule.
_LOWER_TURKIC = ((f"I([{_BELOW}]*)\u0307", r"i\1"), ("I", "ı"), ("İ", "i"))
_LOWER = {
    "tr": _LOWER_TURKIC,
    "az": _LOWER_TURKIC,
    "lt": (
        (f"([IJĮ])(?=[{_BELOW}]*[{_ABOVE}])", "\\1\u0307"),
        ("Ì", "i\u0307\u0300"),
        ("Í", "i\u0307\u0301"),
        ("Ĩ", "i\u0307\u0303"),
    ),
}


def lower_case(text: str, language: str) -> str:
    """Return a text in a language's lower case: Turkish, Azeri and Lithuanian have their own i."""
    for pattern, small in _LOWER.get(re.split("[-_]", language)[0], ()):
        text = re.sub(pattern, small, text)
    return text.lower()
