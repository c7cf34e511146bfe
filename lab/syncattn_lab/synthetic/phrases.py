"""Phrases without clauses in them: noun phrases, prepositional phrases, names and pronouns."""

import random
from collections.abc import Sequence
from typing import TypeVar

from . import lexicon
from .derivation import Link, Node, NodePair, Phrase, Token, join
from .morphology import adjective_ending, article_form

T = TypeVar("T")

NOTHING = NodePair(None, None)


class PhraseGrammar:
    """Draws words and phrases at random in both languages; collects word links in ``links``."""

    def __init__(self, seed: int) -> None:
        # Only Random.random() is guaranteed to be stable across Python versions.
        self.random = random.Random(seed).random
        self.links: list[Link] = []

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """Draw an option at random, earlier options more often than later ones."""
        return options[int(len(options) * self.random() ** 2)]

    def word(self, english: str, german: str, upos: str) -> NodePair:
        """Make an English and a German word that are linked; an empty string makes no word."""
        en = Token(english, upos) if english else None
        de = Token(german, upos) if german else None
        self.links.append((en, de, True))
        return NodePair(en, de)

    def noun_phrase(self, kind: str, case: str, definite: bool = False) -> tuple[NodePair, str]:
        """Draw a noun phrase with a noun of a class in a German case; also return its gender.

        The gender is ``pl`` for every plural. ``definite``: the determiner is definite.
        """
        noun = self.pick(lexicon.NOUNS[kind])
        plural = self.chance(0.3)
        gender = "pl" if plural else noun.gender
        determiners = lexicon.PLURAL_DETERMINERS if plural else lexicon.SINGULAR_DETERMINERS
        article, stem, inflection = self.pick(
            [row for row in determiners if row[0] in lexicon.DEFINITE or not definite]
        )
        parts: list[NodePair] = []

        def add(english: str, german: str, upos: str, label: str) -> None:
            parts.append(self.word(english, german, upos).attach(head, label))

        english = noun.english_plural if plural else noun.english
        german = noun.decline(case, plural)
        modifier = ""
        if kind in lexicon.MODIFIERS and self.chance(0.12):
            modifier, first_part = self.pick(lexicon.MODIFIERS[kind])
            german = first_part + german.lower()
            if modifier.endswith("-"):
                english, modifier = modifier + english, ""
        head = self.word(english, german, "NOUN")
        assert isinstance(head.de, Token)
        head.de.gender = gender
        add(article, article_form(stem, inflection, case, gender) if stem else "", "DET", "det")
        if plural and article in ("", *lexicon.DEFINITE) and self.chance(0.25):
            add(*self.pick(lexicon.NUMERALS), "NUM", "nummod")
        if self.chance(0.25):
            degrees = self.pick(lexicon.ADJECTIVES).degrees
            quality, quality_stem = self.pick(degrees if article == "the" else degrees[:2])
            add(quality, quality_stem + adjective_ending(inflection, case, gender), "ADJ", "amod")
        if modifier:
            add(modifier, "", "NOUN", "compound")
            self.links.append((parts[-1].en, head.de, True))
        return join("NP", head, *parts, head), gender

    def adpositional(self, prepositions: Sequence[tuple[str, str, str]], kind: str) -> NodePair:
        """Draw a prepositional phrase around a noun of a class, still without dependency label."""
        english, german, case = self.pick(prepositions)
        adposition = self.word(english, german, "ADP")
        noun_phrase, _ = self.noun_phrase(kind, case)
        self._contract(adposition.de, noun_phrase.de)
        adposition.attach(noun_phrase, "case")
        return join("PP", noun_phrase, adposition, noun_phrase)

    def _contract(self, adposition: Node | None, noun_phrase: Node | None) -> None:
        """Turn "in dem" into "im"; the English article then has no sure counterpart."""
        assert isinstance(adposition, Token) and isinstance(noun_phrase, Phrase)
        article = noun_phrase.children[0].head
        contracted = lexicon.CONTRACTIONS.get((adposition.word, article.word))
        if contracted:
            adposition.word = contracted
            del noun_phrase.children[0]
            self.links = [
                (en, adposition, False) if de is article else (en, de, sure)
                for en, de, sure in self.links
            ]

    def short_subject(self) -> tuple[NodePair, bool]:
        """Draw a name or a pronoun in the nominative; also return whether it is plural."""
        if self.chance(0.5):
            return self.name(lexicon.NAMES), False
        english, german, plural = self.pick(lexicon.PRONOUNS)
        pronoun = self.word(english, german, "PRON")
        return join("NP", pronoun, pronoun), plural

    def name(self, names: Sequence[tuple[str, str]]) -> NodePair:
        """Draw one of the given names, as a noun phrase."""
        name = self.word(*self.pick(names), "PROPN")
        return join("NP", name, name)
