"""A synchronous dependency grammar of English and German.

Every rule builds both sides at once: the tokens, their heads (Universal Dependencies: content words
govern function words), the constituents and the links between the words. German differs in

- word order: the finite verb is second in main clauses, whatever comes first, and last in
  subordinate ones; participles, infinitives and separable prefixes end the clause;
- case, by role, by verb and by preposition, and agreement in case, gender and number;
- compounds in one word, contracted prepositions ("im"), no "do", commas around clauses.

Attachment can be read off the words: a class of nouns or a form of verbs has one use, or the
nearest candidate governs. Verbs in the present, infinitives and participles of motion are in main
clauses and in clauses with "that" or "if", and the leftmost of them is the root; the past is that
of "because" and "although" or, for verbs of creation, of "which"; other participles follow "who".

Constituents: the German VP is the part of a clause after the subject, down to the verbs at the end.
In main clauses the finite verb is outside the VP, a daughter of S, so that a separable prefix is
the last daughter of a VP that does not hold its verb, and no branches cross.
"""

import re
from collections.abc import Sequence

from . import lexicon
from .derivation import NodePair, Phrase, SentencePair, Token, finish, join, phrase
from .morphology import article_form
from .phrases import NOTHING, PhraseGrammar

_VOWEL = re.compile("(?i)(?!use|univ)[aeiou]|honest")

# The classes of verbs; early ones are more frequent. The others have other uses in the past.
_FRAMES = ("perception", "social", "motion", "handling", "transfer", "creation", "activity")
_PAST_FRAMES = ("perception", "social", "transfer", "activity")
_REASONS = (("because", "weil"), ("although", "obwohl"))
_HABEN, _SEIN = ("hat", "haben"), ("ist", "sind")
# Tense: the form of the content verb in English and in German.
_FORMS = {
    "present": ("present", "present"),
    "negated": ("infinitive", "present"),
    "modal": ("infinitive", "infinitive"),
    "perfect": ("participle", "participle"),
    "past": ("past", "past"),
}


class Grammar(PhraseGrammar):
    """Draws sentence pairs; a seed fixes the sequence of pairs."""

    def draw(self) -> SentencePair:
        """Draw a sentence pair."""
        self.links = []
        clause = self._sentence()
        stop = self.word(".", ".", "PUNCT").attach(clause, "punct")
        assert isinstance(clause.en, Phrase) and isinstance(clause.de, Phrase)
        english = phrase("S", clause.en, *clause.en.children, stop.en)
        german = phrase("S", clause.de, *clause.de.children, stop.de)
        words = list(english.leaves())
        for token, following in zip(words, words[1:], strict=False):
            if token.word == "a" and _VOWEL.match(following.word):
                token.word = "an"
        return finish(english, german, self.links)

    # Sentences and clauses

    def _sentence(self) -> NodePair:
        kind = self.random()
        if kind < 0.38:
            return self._clause(*self._main_verb())
        if kind < 0.51:
            return self._clause(*self._main_verb(), front=self._fronted_phrase())
        if kind < 0.60:
            reason = self._subordinate(self.pick(_REASONS), "past", front=True)
            return self._clause(*self._main_verb(), front=(reason, "advcl"))
        if kind < 0.67:
            reason = self._subordinate(self.pick(_REASONS), "past")
            return self._clause(*self._main_verb(), tail=(reason, "advcl"))
        if kind < 0.74:
            condition = self._subordinate(("if", "wenn"))
            return self._clause(*self._main_verb(), tail=(condition, "advcl"))
        if kind < 0.91:
            content = self._subordinate(("that", "dass"))
            return self._clause("speech", "present", tail=(content, "ccomp"))
        return self._coordination()

    def _main_verb(self) -> tuple[str, str]:
        """Choose frame and tense of a clause that is not in the past."""
        frame = self.pick(_FRAMES)
        if frame == "motion" and self.chance(0.5):
            return frame, "perfect"
        kind = self.random()
        return frame, "present" if kind < 0.65 else "modal" if kind < 0.85 else "negated"

    def _subordinate(self, mark: tuple[str, str], tense: str = "", front: bool = False) -> NodePair:
        """Make a subordinate clause, with a comma in German, in English only after the clause."""
        verb = (self.pick(_PAST_FRAMES), tense) if tense else self._main_verb()
        clause = self._clause(*verb, final=True)
        conjunction = self.word(*mark, "SCONJ").attach(clause, "mark")
        comma = self.word("," if front else "", ",", "PUNCT").attach(clause, "punct")
        parts = (conjunction, clause, comma) if front else (comma, conjunction, clause)
        return join("SBAR", clause, *parts)

    def _clause(
        self,
        frame: str,
        tense: str,
        final: bool = False,
        front: tuple[NodePair, str] | None = None,
        tail: tuple[NodePair, str] | None = None,
    ) -> NodePair:
        """Make a clause from the class of its verb and a tense of `_FORMS`.

        ``final``: the German verb comes last, as in subordinate clauses. What comes first, with its
        label, puts the German subject behind the verb; a clause may come last, with its label.
        """
        subject, plural = self._subject()
        vp, finite = self._predicate(subject, frame, tense, plural, final)
        subject.attach(vp, "nsubj")
        first = front[0].attach(vp, front[1]) if front else NOTHING
        last = tail[0].attach(vp, tail[1]) if tail else NOTHING
        english = phrase("VP", vp.en, vp.en, last.en) if tail else vp.en
        order = (finite, subject.de) if front else (subject.de, finite)
        return NodePair(
            phrase("S", vp.en, first.en, subject.en, english),
            phrase("S", vp.de, first.de, *order, vp.de, last.de),
        )

    def _coordination(self) -> NodePair:
        subject, plural = self._subject()
        vp, finite = self._predicate(subject, *self._main_verb(), plural)
        other, other_finite = self._predicate(subject, *self._main_verb(), plural)
        conjunction = self.word("and", "und", "CCONJ").attach(other, "cc")
        other.attach(vp, "conj")
        subject.attach(vp, "nsubj")
        english = phrase("VP", vp.en, vp.en, conjunction.en, other.en)
        clauses = (
            phrase("S", vp.de, subject.de, finite, vp.de),
            conjunction.de,
            phrase("S", other.de, other_finite, other.de),
        )
        return NodePair(phrase("S", vp.en, subject.en, english), phrase("S", vp.de, *clauses))

    def _predicate(
        self,
        subject: NodePair,
        frame: str,
        tense: str,
        plural: bool,
        final: bool = False,
        relative: bool = False,
    ) -> tuple[NodePair, Token | None]:
        """Make the VP, and, unless ``final``, the German finite verb outside the VP.

        The German VP may be empty.
        """
        verb = self.pick(lexicon.VERBS[frame])
        english_form, german_form = _FORMS[tense]
        english = verb.conjugate_english(english_form, plural)
        german = verb.conjugate_german(german_form, plural)
        separable = verb.prefix if german_form in ("present", "past") else ""
        before = separable if final else ""
        head = self.word(english, before + german, "VERB")
        auxiliary, other_number = self._auxiliary(frame, tense, plural, head)
        adverb = negation = prefix = NOTHING
        if separable and not final:
            prefix = NodePair(None, Token(separable, "ADP")).attach(head, "compound:prt")
            self.links.append((head.en, prefix.de, True))
        if tense == "negated":
            negation = self.word("not", "nicht", "PART").attach(head, "advmod")
        elif self.chance(0.15):
            word = self.word(*self.pick(lexicon.ADVERBS), "ADV").attach(head, "advmod")
            adverb = join("ADVP", word, word)
        complements = self._complements(frame, verb.case, tense == "negated", relative)
        parts = [part.attach(head, label) for part, label in complements]
        objects = [part.de for part, label in complements if label != "obl"]
        obliques = [part.de for part, label in complements if label == "obl"]

        vp = phrase("VP", head.en, adverb.en, head.en, *(part.en for part in parts))
        if auxiliary.en:
            vp = phrase("VP", head.en, auxiliary.en, negation.en, vp)
        verbs = [head.de, auxiliary.de] if auxiliary.de else [head.de]
        assert verbs[-1] is not None
        finite_verb = verbs[-1].head
        finite_verb.subject = subject.de
        other_form = before + verb.conjugate_german(german_form, not plural)
        finite_verb.other_number = other_number or other_form
        finite = None if final else verbs.pop()
        middle = (adverb.de, *objects, negation.de, *obliques, prefix.de)
        return NodePair(vp, phrase("VP", head.de, *middle, *verbs)), finite.head if finite else None

    def _auxiliary(
        self, frame: str, tense: str, plural: bool, head: NodePair
    ) -> tuple[NodePair, str]:
        """Make the auxiliary, if there is one; also return the German form of the other number."""
        other = ""
        if tense == "modal":
            english, *german = self.pick(lexicon.MODALS)
            auxiliary, other = self.word(english, german[plural], "AUX"), german[not plural]
        elif tense == "perfect":
            german_forms = _SEIN if frame == "motion" else _HABEN
            auxiliary = self.word("have" if plural else "has", german_forms[plural], "AUX")
            other = german_forms[not plural]
        elif tense == "negated":
            auxiliary = self.word("do" if plural else "does", "", "AUX")
            self.links.append((auxiliary.en, head.de, False))
        else:
            return NOTHING, ""
        return auxiliary.attach(head, "aux"), other

    def _complements(
        self, frame: str, case: str, definite: bool, relative: bool
    ) -> list[tuple[NodePair, str]]:
        """Make what a verb governs, with labels; the only object, if a person, has the case.

        ``definite``: objects are, as under negation; ``relative``: keep it short, and the object of
        a verb of creation is the relative pronoun.
        """
        if frame == "speech" or (frame == "activity" and self.chance(0.5)):
            return []
        if frame == "creation" and relative:
            return []
        if frame == "activity":
            return [(self.adpositional(lexicon.PLACE_PREPOSITIONS, "place"), "obl")]
        if frame == "motion":
            return [(self.adpositional(lexicon.GOAL_PREPOSITIONS, "place"), "obl")]
        if frame == "social":
            return [(self.noun_phrase("person", case, definite)[0], "obj")]
        complements = []
        if frame == "transfer":
            complements.append((self.noun_phrase("person", "dat", definite)[0], "iobj"))
        physical = frame in ("perception", "handling")
        animal = physical and self.chance(0.3)
        instrument = physical and not relative and self.chance(0.25)
        thing = self.noun_phrase("animal" if animal else "thing", "acc", definite)
        if not relative:
            thing = self._extend(thing, ("place",) if animal or instrument else ("which", "place"))
        complements.append((thing[0], "obj"))
        if instrument:
            tool = self.adpositional(lexicon.INSTRUMENT_PREPOSITIONS, "instrument")
            complements.append((tool, "obl"))
        return complements

    def _fronted_phrase(self) -> tuple[NodePair, str]:
        kind = self.random()
        if kind < 0.6:
            adverb = self.word(*self.pick(lexicon.SENTENCE_ADVERBS), "ADV")
            return join("ADVP", adverb, adverb), "advmod"
        if kind < 0.8:
            return self.adpositional(lexicon.PLACE_PREPOSITIONS, "place"), "obl"
        english, german, names = self.pick(lexicon.DATES)
        day = self.word(*self.pick(names), "PROPN")
        adposition = self.word(english, german, "ADP").attach(day, "case")
        return join("PP", day, adposition, join("NP", day, day)), "obl"

    def _subject(self) -> tuple[NodePair, bool]:
        """Make a subject; also return whether it is plural."""
        if self.chance(0.25):
            return self.short_subject()
        noun_phrase = self.noun_phrase("person", "nom")
        person, gender = self._extend(noun_phrase, ("who", "attribute", "town"))
        return person, gender == "pl"

    def _extend(
        self, noun_phrase: tuple[NodePair, str], followers: Sequence[str]
    ) -> tuple[NodePair, str]:
        """Let a relative clause or a prepositional phrase follow, now and then."""
        noun, gender = noun_phrase
        if not self.chance(0.2):
            return noun_phrase
        return join("NP", noun, noun, self._follower(self.pick(followers), noun, gender)), gender

    def _follower(self, kind: str, noun: NodePair, gender: str) -> NodePair:
        if kind in ("who", "which"):
            return self._relative_clause(kind, gender).attach(noun, "acl:relcl")
        if kind == "town":
            town = self.name(lexicon.TOWNS)
            adposition = self.word("from", "aus", "ADP").attach(town, "case")
            modifier = join("PP", town, adposition, town)
        elif kind == "attribute":
            modifier = self.adpositional(lexicon.INSTRUMENT_PREPOSITIONS, "attribute")
        else:
            modifier = self.adpositional(lexicon.PLACE_PREPOSITIONS, "place")
        return modifier.attach(noun, "nmod")

    def _relative_clause(self, pronoun: str, gender: str) -> NodePair:
        """Make a relative clause, of the subject ("who") or of the object ("which")."""
        case = "nom" if pronoun == "who" else "acc"
        forms = {each: article_form("d", "der", case, each) for each in ("m", "f", "n", "pl")}
        relative = self.word(pronoun, forms[gender], "PRON")
        assert isinstance(relative.de, Token)
        relative.de.forms = forms
        if pronoun == "who":
            plural = gender == "pl"
            clause, _ = self._predicate(relative, "handling", "perfect", plural, True, True)
            relative.attach(clause, "nsubj")
        else:
            subject, plural = self.short_subject()
            vp, _ = self._predicate(subject, "creation", "past", plural, True, True)
            relative.attach(vp, "obj")
            clause = join("S", vp, subject.attach(vp, "nsubj"), vp)
        commas = (self.word("", ",", "PUNCT").attach(clause, "punct") for _ in range(2))
        return join("SBAR", clause, next(commas), relative, clause, next(commas))
