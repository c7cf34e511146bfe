"""Derivations of sentence pairs under construction, and the finished sentence pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(eq=False)
class Token:
    """A word of a derivation, with its governor (dependency head); the root has no governor.

    Attributes:
        word: its form.
        upos: its part of speech.
        label: its relation to the governor.
        governor: the word that it depends on.
        subject: of a German finite verb, what it agrees with.
        other_number: of a German finite verb, the form of the other number.
        forms: of a German relative pronoun, its forms by gender, ``pl`` for the plural.
        gender: of a German noun, its gender, or ``pl``.
    """

    word: str
    upos: str
    label: str = "root"
    governor: Token | None = None
    subject: Node | None = None
    other_number: str = ""
    forms: Mapping[str, str] | None = None
    gender: str = ""

    @property
    def head(self) -> Token:
        """The token by which a node is attached to a governor, here the token itself."""
        return self


@dataclass(eq=False)
class Phrase:
    """A constituent of a derivation: category, head word, and children in order."""

    category: str
    head: Token
    children: list[Node]

    def leaves(self) -> Iterator[Token]:
        """Yield the tokens of the phrase from left to right."""
        for child in self.children:
            if isinstance(child, Phrase):
                yield from child.leaves()
            else:
                yield child


Node: TypeAlias = Token | Phrase


@dataclass(frozen=True)
class Sentence:
    """One side of a pair: words, heads from 1 (0: root), and labels as in Universal Dependencies.

    ``tree`` is the phrase structure in Penn style, whose preterminals are ``upos``.
    """

    words: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...]
    upos: tuple[str, ...]
    tree: str


@dataclass(frozen=True)
class WrongTranslation:
    """A German translation with a single error, for contrastive pairs.

    Attributes:
        kind: ``agreement``: the finite verb has the number that its subject has not;
            ``attachment``: a relative pronoun agrees with another noun than the one it belongs to;
            ``order``: the finite verb follows its subject, as in English, where German has it
            elsewhere.
        words: its words.
        distance: from the verb to its subject, from the pronoun to its noun, or, of order, over how
            many words the verb moved.
    """

    kind: str
    words: tuple[str, ...]
    distance: int


@dataclass(frozen=True)
class SentencePair:
    """An English sentence, its German translation, and the word links (English, German) from 0.

    ``possible`` contains ``sure``; the rest of it links function words whose counterpart has no
    word of its own, as "does" and "the" in "in the" when German has "im". ``wrong`` are German
    sentences with one error each.
    """

    source: Sentence
    target: Sentence
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]
    wrong: tuple[WrongTranslation, ...] = ()


@dataclass
class NodePair:
    """A word or phrase in both languages; None in a language that has no counterpart."""

    en: Node | None
    de: Node | None

    def attach(self, governor: NodePair, label: str) -> NodePair:
        """Make the head words of this pair dependents of the head words of another pair."""
        for node, other in ((self.en, governor.en), (self.de, governor.de)):
            if node and other:
                node.head.governor, node.head.label = other.head, label
        return self


def phrase(category: str, head: Node | None, *children: Node | None) -> Phrase:
    """Make a phrase of one language from a head and children; leave out missing children."""
    assert head is not None
    return Phrase(category, head.head, [child for child in children if child])


def join(category: str, head: NodePair, *children: NodePair) -> NodePair:
    """Make a phrase in both languages, with the same order of children."""
    return NodePair(
        phrase(category, head.en, *(child.en for child in children)),
        phrase(category, head.de, *(child.de for child in children)),
    )


# A word, its counterpart and whether that is sure; no link where one of the two is missing.
Link: TypeAlias = tuple[Node | None, Node | None, bool]


def finish(english: Phrase, german: Phrase, links: Iterable[Link]) -> SentencePair:
    """Turn a derivation into a sentence pair: number the tokens, list heads, labels and links."""
    source, source_positions = _linearise(english)
    target, target_positions = _linearise(german)
    numbered = [
        (source_positions[en.head], target_positions[de.head], sure)
        for en, de, sure in links
        if en and de
    ]
    return SentencePair(
        source,
        target,
        frozenset((i, j) for i, j, sure in numbered if sure),
        frozenset((i, j) for i, j, _ in numbered),
        tuple(_list_wrong(target_positions)),
    )


def _list_wrong(positions: Mapping[Token, int]) -> Iterator[WrongTranslation]:
    """Yield the sentence with each error possible for its verbs and relative pronouns.

    Args:
        positions: the place of each word, in order.
    """
    words = [token.word for token in positions]
    nouns = [token for token in positions if token.gender]
    for token, place in positions.items():
        if token.subject is not None:
            distance = abs(place - positions[token.subject.head])
            if token.other_number != token.word:
                wrong = (*words[:place], token.other_number, *words[place + 1 :])
                yield WrongTranslation("agreement", wrong, distance)
            after = max(positions.get(leaf, 0) for leaf in _list_leaves(token.subject))
            moved = tuple(_move(words, place, after))
            # The subject of a second verb after "und" is that of the first.
            verb = token.governor if token.label == "aux" else token
            if token.subject.head.governor is verb and moved != tuple(words):
                over = after - place if after > place else place - after - 1
                yield WrongTranslation("order", moved, over)
        if token.forms is not None and token.governor is not None:
            # The pronoun depends on the verb of its clause, and that on the noun.
            noun = token.governor.governor
            others = [other for other in nouns if token.forms[other.gender] != token.word]
            if noun is not None and others:
                nearest = min(others, key=lambda other: abs(positions[other] - place))
                wrong = (*words[:place], token.forms[nearest.gender], *words[place + 1 :])
                yield WrongTranslation("attachment", wrong, abs(place - positions[noun]))


def _list_leaves(node: Node) -> Iterable[Token]:
    return node.leaves() if isinstance(node, Phrase) else [node]


def _move(words: Sequence[str], place: int, after: int) -> list[str]:
    """Return the words with the one at a place moved to behind another."""
    rest = [*words[:place], *words[place + 1 :]]
    begin = after + 1 if after < place else after
    return [*rest[:begin], words[place], *rest[begin:]]


def _linearise(root: Phrase) -> tuple[Sentence, dict[Token, int]]:
    leaves = list(root.leaves())
    # A comma at the end of a clause is dropped before other punctuation.
    tokens = [
        token
        for token, following in zip(leaves, [*leaves[1:], None], strict=True)
        if not (token.word == "," and following and following.upos == "PUNCT")
    ]
    positions = {token: index for index, token in enumerate(tokens)}

    def brackets(node: Node) -> str:
        if isinstance(node, Token):
            return f"({node.upos} {node.word})" if node in positions else ""
        inside = " ".join(filter(None, map(brackets, node.children)))
        return f"({node.category} {inside})" if inside else ""  # all its words stand elsewhere

    sentence = Sentence(
        tuple(token.word for token in tokens),
        tuple(positions[token.governor] + 1 if token.governor else 0 for token in tokens),
        tuple(token.label for token in tokens),
        tuple(token.upos for token in tokens),
        brackets(root),
    )
    return sentence, positions
