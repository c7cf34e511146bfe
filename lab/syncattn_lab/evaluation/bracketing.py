"""Unlabelled bracketing scores of trees in two conventions, which differ by up to 20 points.

In both, a bracket is the span of a constituent. Parts of speech do not count, nor do brackets that
`parse_tree` removes, such as a ``ROOT`` around the tree.

**evalb** (Sekine and Collins): the brackets of all sentences are counted together. The whole
sentence counts, brackets over one word count, and a span counts as often as it occurs (unary
chains). Punctuation stays, as in evalb without a parameter file: ``COLLINS.prm`` deletes it by the
tags of the Penn Treebank, which other treebanks and induced trees do not have.

**Sentence F1**, the standard in unsupervised parsing (Shen et al., 2018; Kim et al., 2019): the
F1 of each sentence, then the mean. First, punctuation is removed from both trees; then spans of one
word and of the whole sentence are left out, and each span counts once. Sentences of fewer than two
words are skipped. If no gold span is left, recall is 1, and so is precision if none is predicted
(as in Shen et al.'s script). Punctuation is recognised by the words of the gold tree, not by their
tags, so any tag set will do; see `is_punctuation`.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean
from typing import Any, TypeAlias
from unicodedata import category

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.trees.brackets import simplify_word
from syncattn_fairseq.trees.tree import Tree

Span: TypeAlias = tuple[int, int]
"""The position of a constituent, as its first word and the word after its last, from 0."""

_READ_ALOUD = frozenset("#%&*/@\\§‰")


@dataclass(frozen=True)
class Brackets:
    """Numbers of brackets: matching brackets, predicted brackets, and gold brackets."""

    matched: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        """Share of predicted brackets that are gold; without any, 1 if gold has none, else 0."""
        return self.matched / self.predicted if self.predicted else float(not self.gold)

    @property
    def recall(self) -> float:
        """Share of gold brackets that were predicted; 1 if there are no gold brackets."""
        return self.matched / self.gold if self.gold else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 1 if there are no brackets at all."""
        brackets = self.predicted + self.gold
        return 2 * self.matched / brackets if brackets else 1.0


@dataclass(frozen=True)
class BracketingScore:
    """The bracketing scores of a corpus in two conventions, evalb's and sentence F1."""

    evalb: Brackets
    """The brackets of all sentences with a gold tree, added up."""
    sentences: int
    words: int
    """Words of these sentences, including punctuation."""
    each: tuple[Brackets, ...]
    """The brackets of each sentence with two words that are no punctuation, for sentence F1."""
    too_short: int
    """Sentences left out of sentence F1, since fewer than two words are not punctuation."""
    left_out: int
    """Sentences without a gold tree."""

    def mean(self, rate: str) -> float:
        """Return the mean ``precision``, ``recall`` or ``f1`` of sentences; 0 without sentences."""
        return fmean(getattr(one, rate) for one in self.each) if self.each else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the corpus's numbers as a dictionary for JSON, without those of each sentence."""
        rates = ("precision", "recall", "f1")
        evalb = {rate: getattr(self.evalb, rate) for rate in rates} | vars(self.evalb)
        sentence = {rate: self.mean(rate) for rate in rates}
        return {
            "evalb": evalb | {"sentences": self.sentences, "words": self.words},
            "sentence": sentence | {"sentences": len(self.each), "too_short": self.too_short},
            "left_out": self.left_out,
        }


def score_trees(
    predicted: Sequence[Tree | None], gold: Sequence[Tree | None], name: str = "predicted trees"
) -> BracketingScore:
    """Compare predicted trees with gold trees over a corpus; skip sentences without a gold tree.

    The trees need the same number of words, not the same words: a system may write ``<unk>``.
    Errors, about numbers of sentences or words, call the predicted trees by their file's ``name``.
    """
    if len(predicted) != len(gold):
        raise DataError(
            f"{name}:{min(len(predicted), len(gold))}: the file has {len(predicted)} lines, but "
            f"there are {len(gold)} gold trees; both files need one line for each sentence, "
            "empty lines included"
        )
    total: Counter[str] = Counter()
    sentences: list[Brackets] = []
    for number, (guess, truth) in enumerate(zip(predicted, gold, strict=True), 1):
        if truth is None:
            total["left_out"] += 1
            continue
        words = list(truth.leaves())
        count = 0 if guess is None else sum(1 for _ in guess.leaves())
        if guess is None or count != len(words):
            raise DataError(
                f"{name}:{number}: the tree has {count} words, but the gold tree has "
                f"{len(words)}; write each tree over all words, with a label in every bracket, "
                "as in (X (X the) (X man))"
            )
        spans, gold_spans = find_constituents(guess), find_constituents(truth)
        total.update(vars(_match(spans, gold_spans)), sentences=1, words=count)
        stays = [not is_punctuation(word) for word in words]
        if sum(stays) < 2:
            total["too_short"] += 1
        else:
            both = (select_proper_spans(some, stays) for some in (spans, gold_spans))
            sentences.append(_match(*both))
    evalb = Brackets(total["matched"], total["predicted"], total["gold"])
    rest = (total[name] for name in ("too_short", "left_out"))
    return BracketingScore(evalb, total["sentences"], total["words"], tuple(sentences), *rest)


def find_constituents(tree: Tree) -> list[Span]:
    """Return the span of every bracket, except brackets of a part of speech around one word."""
    spans: list[Span] = []
    words = 0
    agenda: list[Tree | str | int] = [tree]  # a number: close the bracket that begins there
    while agenda:
        node = agenda.pop()
        if isinstance(node, int):
            spans.append((node, words))
        elif isinstance(node, str):
            words += 1
        else:
            if len(node.children) > 1 or isinstance(node.children[0], Tree):
                agenda.append(words)
            agenda += reversed(node.children)
    return spans


def _match(predicted: Collection[Span], gold: Collection[Span]) -> Brackets:
    """Match predicted with gold spans; a span with two copies in both trees matches twice."""
    matched = (Counter(predicted) & Counter(gold)).total()
    return Brackets(matched, len(predicted), len(gold))


def select_proper_spans(spans: Sequence[Span], stays: Sequence[bool]) -> set[Span]:
    """Remove words from spans; return the spans of several, but not all, of the words left."""
    before = [0, *accumulate(stays)]  # the number of words before each that stay
    moved = ((before[start], before[end]) for start, end in spans)
    return {(start, end) for start, end in moved if 1 < end - start < before[-1]}


def is_punctuation(word: str) -> bool:
    """Return True if every character of a word is punctuation.

    That is everything that Unicode calls punctuation (``.``, ``--``, ``。``, also ``-LRB-`` and two
    backquotes) and the single backquote, except signs that are read aloud and that treebanks tag
    as words (``%``, ``&``). Unicode's symbols are words: ``$``, ``+``, ``|``, ``||``.
    """
    return all(
        character == "`" or (category(character)[0] == "P" and character not in _READ_ALOUD)
        for character in simplify_word(word)
    )
