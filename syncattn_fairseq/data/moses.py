"""The Moses tokenizer, an optional dependency, with corrections.

Texts are prepared by numbered rules, so that those of earlier ones stay as they are. Rules 1 are
sacremoses's. By rules 2, marks stay with their letters, Finnish and Swedish words keep their colons
(*EU:n*), and the detokeniser leaves the spaces before Czech numbers and none before a danda and its
like, or inside quotes of some languages.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import regex

from ..base.errors import DataError

#: Languages of our recipes that have no rules in Moses, and for which its English rules are right.
AS_ENGLISH = ("tr",)


#: Versions of the rules by which texts are tokenised (see the module); new texts get the last one.
RULES = 1, 2


def load_sacremoses() -> Any:
    """Import sacremoses, the Moses tokenizer; raise `DataError` if sacremoses is not installed."""
    try:
        import sacremoses
    except ImportError:
        raise DataError(
            "the Moses tokenizer needs sacremoses; pip install 'syncattn-fairseq[moses]'"
        ) from None
    return sacremoses


def check_language(language: str) -> None:
    """Raise `DataError` if Moses has no rules for a language.

    sacremoses would silently use the English ones.
    """
    load_sacremoses()
    from sacremoses.corpus import NonbreakingPrefixes

    known = sorted({code for code in NonbreakingPrefixes().available_langs.values()})
    if language not in (*known, *AS_ENGLISH):
        raise DataError(
            f"the Moses tokenizer does not know the language {language!r}; give one of "
            f"{' '.join(known)}"
        )


@cache
def _list_joined() -> str:
    """Return Unicode's combining marks and joiners, for the pattern of characters inside words."""
    # Of the first plane, as Moses's letters are: with others, patterns are ten times slower.
    marks = (c for c in map(chr, range(0x10000)) if unicodedata.category(c).startswith("M"))
    return "".join(marks) + "\u200c\u200d"


#: Languages with colons in words, before small letters.
_WITH_COLONS = ("fi", "sv")


def open_tokenizer(language: str, rules: int = RULES[-1]) -> Any:
    """Return sacremoses's tokenizer for a language, with English rules for an unknown one.

    Args:
        language: the code of the language.
        rules: the version of the rules, one of `RULES`.
    """
    tokenizer = load_sacremoses().MosesTokenizer(language)
    if rules == 1:
        return tokenizer
    joined = _list_joined()
    for letters in (tokenizer.IsAlnum, tokenizer.IsAlpha):
        for name in dir(tokenizer):
            value = getattr(tokenizer, name)
            if name.endswith("APOSTROPHE") and isinstance(value, list):
                setattr(tokenizer, name, [_add(joined, pair, letters) for pair in value])
            elif isinstance(value, tuple) and letters in getattr(value[0], "pattern", ""):
                setattr(tokenizer, name, _add(joined, value, letters))
    # What is neither a letter nor a digit has spaces around it and its marks.
    kept = rf"{tokenizer.IsAlnum}{joined}\s.'`,\-"
    pattern = f"[^{kept}][{joined}]*"
    if language in _WITH_COLONS:
        small = tokenizer.IsLower
        pattern = rf"[^{kept}:][{joined}]*|(?<!\d):(?![{small}])|:(?![{small}\d])"
    tokenizer.PAD_NOT_ISALNUM = re.compile(f"({pattern})"), r" \1 "
    return tokenizer


def _add(joined: str, pair: tuple[Any, str], letters: str) -> tuple[Any, str]:
    return re.compile(pair[0].pattern.replace(letters, letters + joined)), pair[1]


#: Turkish case endings and the like, which an apostrophe separates from names and numbers.
_ENDINGS = (
    "(?!dedi|diye|ile|ise)(?:[yns]?[ae]|[yns]?[ıiuü]|[yn]?[dt][aeıiuü][nrmk]?|[nyms]?[ıiuü][nmz]|l[aeıiuü]"
    "[rknz]?|l[ae]|yl[ae]|n?c[aeıiuü]|ki|m[ıiuü]ş|ş?[ae]r|s[ıiuü]z|k[ae]n|nc[ıiuü]|t)+"
)
#: Where the detokeniser must leave no space, and where it must leave one.
_GLUE, _GAP = "\ue000", "\ue001"
_BOTH, _LEFT, _RIGHT = rf"\1\2{_GLUE} ", rf"\1\2{_GAP} ", rf"\1 \2{_GLUE} "
#: What the tokenizer splits and the detokeniser of sacremoses does not join, by language, in text
#: between spaces.
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


#: Languages whose quotes open as Romanian ones, and what closes those that rules 1 leave apart.
_OPENED = ("hu", "pl")
_CLOSED = {
    **dict.fromkeys(("fi", "sv"), (re.compile(r"(?<!\S)” ([^”]*?) ?”"), r"”\1”")),
    **dict.fromkeys(("hi", *_OPENED), (re.compile(r" ([”»])(?!\w)"), r"\1")),
}
#: What ends a sentence or a part of it, but what Moses knows: ASCII's, Chinese and Japanese ends.
_ENDS = regex.compile(
    r" +(?=[\p{Terminal_Punctuation}--\p{ASCII}--\p{Script_Extensions=Han}](?!\w))", regex.V1
)
#: After the last word: Moses takes the end of a Czech sentence for what is before each number.
_LAST = "\ue002"


def open_detokenizer(language: str, rules: int = RULES[-1]) -> Callable[[str], str]:
    """Return a function for undoing the Moses tokenizer in a line of words.

    Apostrophes are put back as the language has them: Moses's own detokeniser takes those of most
    languages for quotation marks.

    Args:
        language: the code of the language.
        rules: the version of the rules, one of `RULES`.

    Raises:
        DataError: sacremoses is missing, or has no rules for the language.
    """
    check_language(language)
    detokenizer = load_sacremoses().MosesDetokenizer(language)
    more = _APART["ro"][:1] if rules > 1 and language in _OPENED else ()
    general = () if language in ("en", "fr", "it") else _APART[""]
    apart = [(re.compile(p), joined) for p, joined in (*_APART.get(language, ()), *more, *general)]

    def detokenize(words: str) -> str:
        text = f" {' '.join(words.split())} "
        for pattern, joined in apart:
            text = pattern.sub(joined, text)
        last = [_LAST] if rules > 1 and language == "cs" else []
        plain: str = detokenizer.detokenize([*text.split(), *last])
        plain = plain.removesuffix(_LAST).rstrip()
        plain = plain.replace(f"{_GLUE} ", "").replace(_GLUE, "").replace(_GAP, "")
        if rules == 1:
            return plain
        plain = _ENDS.sub("", plain)
        closed = _CLOSED.get(language)
        return closed[0].sub(closed[1], plain) if closed else plain

    return detokenize


def lower_case(text: str, language: str) -> str:
    """Return a text in lower case, by the rules of a language (Turkish i without a dot)."""
    if _has_two_i(language):
        text = text.replace("I\u0307", "i").replace("I", "ı").replace("İ", "i")
    return text.lower()


def find_first(words: Sequence[str], rules: int = RULES[-1]) -> int | None:
    """Return the index of the word that takes a sentence's initial capital; None if none does.

    Args:
        words: the words of a sentence.
        rules: the version of the rules, one of `RULES`.
    """
    if rules == 1:
        return next((i for i, word in enumerate(words) if word[:1].isalpha()), 0)
    first = next((i for i, word in enumerate(words) if any(map(str.isalnum, word))), None)
    return first if first is not None and words[first][0].isalpha() else None


def lower_first(word: str, language: str, rules: int = RULES[-1]) -> str:
    """Return a word with its first letter in lower case, by the rules of its language."""
    small = word[:1].lower() if rules == 1 else lower_case(word[:1], language)
    return small + word[1:]


def raise_first(text: str, language: str, rules: int = RULES[-1]) -> str:
    """Return a sentence with a capital on the first word, unless it is a word such as *iPhone*.

    Numbers do not, nor do words with a capital inside, such as *iPhone*, and letters without a
    capital of one character, such as *ß*. By rules 1, the first letter becomes a capital.

    Args:
        text: the sentence.
        language: the code of the language.
        rules: the version of the rules, one of `RULES`.
    """
    if rules == 1:
        return re.sub(r"[^\W\d_]", lambda match: match[0].upper(), text, count=1)
    match = re.match(r"(?:[^\w]|_)*([^\W\d_])([^\W\d_]*)", text)
    if match is None or any(map(str.isupper, match[2])):
        return text
    at = match.start(1)
    capital = "İ" if text[at] == "i" and _has_two_i(language) else text[at].title()
    return text if len(capital) > 1 else text[:at] + capital + text[at + 1 :]


def _has_two_i(language: str) -> bool:
    return re.split("[-_]", language)[0] in ("tr", "az")
