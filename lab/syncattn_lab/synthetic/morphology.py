"""The inflection of English and German words, as far as the built-in corpus needs it.

Cases are ``nom``, ``acc`` and ``dat``. A German slot for endings is a case and a gender, where the
plural counts as a fourth gender ``pl``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# The endings of articles, and of adjectives if no article shows the case.
STRONG = {
    "nom": {"m": "er", "f": "e", "n": "es", "pl": "e"},
    "acc": {"m": "en", "f": "e", "n": "es", "pl": "e"},
    "dat": {"m": "em", "f": "er", "n": "em", "pl": "en"},
}
# Where "ein" has no ending, and where an adjective after an inflected article has only "e".
_BARE_EIN = {("nom", "m"), ("nom", "n"), ("acc", "n")}
_WEAK_E = {("nom", "m"), ("nom", "f"), ("nom", "n"), ("acc", "f"), ("acc", "n")}
_UMLAUT = str.maketrans("aouAOU", "äöüÄÖÜ")


def umlaut(stem: str) -> str:
    """Put an umlaut on the last vowel with an umlaut form: ``Garten`` -> ``Gärten``."""
    return re.sub(
        "(au|[aouAOU])([^aouAOU]*)$", lambda m: m[1][0].translate(_UMLAUT) + m[1][1:] + m[2], stem
    )


def english_s(word: str) -> str:
    """Add the English ending -s of plural nouns and third person verbs, with its spelling."""
    if re.search("[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if re.search("(s|x|z|ch|sh)$", word) else "s")


def english_ed(word: str) -> str:
    """Add the English ending -ed of the regular past tense, with its spelling."""
    if re.search("[^aeiou]y$", word):
        return word[:-1] + "ied"
    return word + ("d" if word.endswith("e") else "ed")


@dataclass(frozen=True)
class Noun:
    """An English noun and its German translation, whose ``gender`` is ``m``, ``f`` or ``n``."""

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: str
    weak: bool

    @classmethod
    def parse(cls, entry: str) -> Noun:
        """Parse a lexicon entry, such as ``child/children=Kind.n.er``.

        Gender ``w`` is weak masculine, and ``"`` an umlaut in the plural.
        """
        english, german = entry.split("=")
        singular, _, plural = english.partition("/")
        stem, gender, ending = german.split(".")
        changed = umlaut(stem) if ending.startswith('"') else stem
        forms = singular, plural or english_s(singular), stem, changed + ending.strip('"-')
        return cls(*forms, gender="m" if gender == "w" else gender, weak=gender == "w")

    def decline(self, case: str, plural: bool) -> str:
        """Return the German form of the noun in a case and number."""
        if plural:
            takes_n = case == "dat" and self.german_plural[-1] not in "ns"
            return self.german_plural + "n" * takes_n
        return self.german_plural if self.weak and case != "nom" else self.german


def _weak_forms(infinitive: str) -> tuple[str, str, str]:
    stem = re.sub("(?<=[lr])n$|en$", "", infinitive)
    if re.search("([td]|(ch|[^aeiouäöülmnrh])[mn])$", stem):
        stem += "e"
    ge = "" if re.match("be|ver|er|ent|zer|ge|.*ieren$", infinitive) else "ge"
    return stem + "t", stem + "te", ge + stem + "t"


@dataclass(frozen=True)
class Verb:
    """An English verb and its German translation, with their inflected forms."""

    english: tuple[str, ...]
    """Infinitive, past and participle of the English verb."""
    german: tuple[str, ...]
    """Infinitive, third person singular, past and participle, without the separable prefix."""
    prefix: str
    case: str
    """The German case, ``acc`` or ``dat``, of the verb's object."""

    @classmethod
    def parse(cls, entry: str) -> Verb:
        """Parse a lexicon entry: ``call: an|rufen ruft rief gerufen``, or ``open: auf|machen``.

        The second has regular forms in both languages.

        ``+dat`` at the end stands for a dative object.
        """
        english, _, german = entry.partition(":")
        base, *past = english.split()
        first, *forms = german.replace("+dat", "").split()
        prefix, _, infinitive = first.rpartition("|")
        return cls(
            english=(base, *(past or [english_ed(base)] * 2)),
            german=(infinitive, *(forms or _weak_forms(infinitive))),
            prefix=prefix,
            case="dat" if "+dat" in german else "acc",
        )

    def conjugate_english(self, form: str, plural: bool) -> str:
        """Return an English form: ``present``, ``past``, ``participle`` or ``infinitive``.

        The present is that of the third person.
        """
        if form == "present" and not plural:
            return english_s(self.english[0])
        return self.english[{"past": 1, "participle": 2}.get(form, 0)]

    def conjugate_german(self, form: str, plural: bool) -> str:
        """Return a German form; ``present`` and ``past`` come without the separable prefix.

        The names of forms are those of English.
        """
        infinitive, present, past, participle = self.german
        if form == "present":
            return infinitive if plural else present
        if form == "past":
            return past.removesuffix("e") + "en" if plural else past
        return self.prefix + (participle if form == "participle" else infinitive)


@dataclass(frozen=True)
class Adjective:
    """An adjective in English and German: the positive and, if compared, two more degrees.

    German forms are those that take endings.
    """

    degrees: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, entry: str) -> Adjective:
        """Parse a lexicon entry, such as ``old=alt"``: compared, with an umlaut.

        ``+`` stands for comparison without an umlaut. Without a mark, an adjective is not compared.
        """
        english, german = entry.split("=")
        stem = german.rstrip('+"')
        if stem == german:
            return cls(((english, german),))
        base = re.sub("^([^aeiou]*[aeiou])([bdgnt])$", r"\1\2\2", english)
        base = re.sub("y$", "i", base).removesuffix("e")
        changed = umlaut(stem) if german.endswith('"') else stem
        most = "t" if stem == "groß" else "est" if re.search("([dtszßu])$", stem) else "st"
        return cls(((english, stem), (base + "er", changed + "er"), (base + "est", changed + most)))


def article_form(stem: str, kind: str, case: str, gender: str) -> str:
    """Return a German determiner in its form for a case and a gender.

    Args:
        stem: the determiner without its ending; ``d`` is the stem of the definite article.
        kind: the pattern of endings, ``der`` or ``ein``.
        case: the grammatical case: ``nom``, ``acc`` or ``dat``.
        gender: ``m``, ``f`` or ``n``; ``pl`` for the plural of all genders.
    """
    ending = STRONG[case][gender]
    if kind == "ein" and (case, gender) in _BARE_EIN:
        return stem
    if stem == "d":
        return "d" + {"e": "ie", "es": "as"}.get(ending, ending)
    return stem + ending


def adjective_ending(article: str, case: str, gender: str) -> str:
    """Return the ending of a German adjective after ``der``, after ``ein``, or without either."""
    if not article or (article == "ein" and (case, gender) in _BARE_EIN):
        return STRONG[case][gender]
    return "e" if (case, gender) in _WEAK_E else "en"
