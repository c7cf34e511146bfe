"""Score attention heads as dependency parsers: each head, and the strongest for each label.

A head that was chosen among many on a text is too good there. So the strongest one is chosen on
every second sentence, and scored on the others, beside parses that know no syntax.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from syncattn_fairseq.inference.attention_heads import HeadName

from .attachment import AttachmentScore
from .attachment_baselines import ROOT, say_offset
from .intervals import Interval
from .measures import Verdict, decide, holm
from .significance import compare_scores

#: A label is compared if it has so many words among those that choose, and those that score.
LEAST = 10
#: The control that is chosen anew for each label.
OFFSET = "best offset"


@dataclass(frozen=True)
class Words:
    """The words of a text, with their parents, to score attention heads as parsers.

    Attributes:
        sentences: the number of each word's sentence, from 0, ascending.
        positions: the position of each word in its sentence, from 1.
        sizes: the number of words of each word's sentence.
        parents: the parent of each word, from 1; 0 is the root.
        labels: the dependency label of each word; None: not known.
    """

    sentences: np.ndarray
    positions: np.ndarray
    sizes: np.ndarray
    parents: np.ndarray
    labels: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.sentences)

    def list_labels(self) -> list[str]:
        """List the dependency labels of the words, most frequent first; empty without labels."""
        counts = Counter([] if self.labels is None else self.labels.tolist())
        return sorted(filter(None, counts), key=lambda label: (-counts[label], label))

    def with_label(self, label: str | None) -> np.ndarray:
        """Return a mask of the words with a dependency label; all words if the label is None."""
        if label is None or self.labels is None:
            return np.full(len(self), label is None)
        found: np.ndarray = self.labels == label
        return found

    @property
    def choosing(self) -> np.ndarray:
        """Mask of the words of every second sentence, by which the strongest head is chosen."""
        _, order = np.unique(self.sentences, return_inverse=True)
        found: np.ndarray = order % 2 == 0
        return found

    def follow(self, offset: int) -> np.ndarray:
        """Return a mask of the words whose parent is at the given offset from the word.

        The root is at any offset that leads out of the sentence.
        """
        guess = self.positions + offset
        inside = (offset != ROOT) & (guess >= 1) & (guess <= self.sizes)
        return np.where(inside, guess, 0) == self.parents

    def find_offset(self, chosen: np.ndarray) -> int:
        """Return the offset to the parent that is right for most of the chosen words.

        Args:
            chosen: which words count.
        """
        distances = np.where(self.parents > 0, self.parents - self.positions, ROOT)[chosen]
        candidates = sorted({ROOT, *distances.tolist()}, key=lambda x: (abs(x), x))
        return max(candidates, key=lambda offset: int(self.follow(offset)[chosen].sum()))


@dataclass(frozen=True)
class View:
    """How well the heads of the encoder or decoder find parents, beside parses without syntax.

    Attributes:
        part: ``encoder`` or ``decoder``.
        rows: ``input`` or ``predicted``: which token a row of the decoder stands for.
        names: the names of the heads.
        kinds: the kinds of the heads, such as ``ordinary``.
        words: the words whose parents the heads should look at.
        right: whether a head looks most at the word's parent, ``(words, heads)``.
        controls: whether a parse that knows no syntax has the right parent, ``(words,)``, by the
            name of the parse.
    """

    part: str
    rows: str
    names: Sequence[HeadName]
    kinds: Sequence[str]
    words: Words
    right: np.ndarray
    controls: Mapping[str, np.ndarray]

    def score(self, right: np.ndarray, label: str | None = None) -> AttachmentScore:
        """Return the attachment score of a head or control, given which words it gets right.

        Args:
            right: whether each word has the right parent.
            label: the dependency label of the words that are scored; None: all words.
        """
        chosen = self.words.with_label(label)
        counted = int(chosen.sum())
        return AttachmentScore(int(right[chosen].sum()), counted, counted)


@dataclass(frozen=True)
class Strongest:
    """The strongest attention head for a label: chosen on half the sentences, scored on the rest.

    Attributes:
        label: the dependency label; None: all words.
        head: the head's number among those of the view.
        words: how many were scored.
        recall: the share of these words whose parent the head looks at.
        confidence: half the width of its 95 % interval, over sentences.
        controls: the recall of each control, with the best offset of this label.
        offset: that offset.
        control: the control that was best on the sentences that choose.
        difference: between the head's recall and the control's, with its 95 % interval.
        p: of the difference, by randomisation over sentences.
        corrected: p by Holm's method.
        verdict: of the head against the control.
    """

    label: str | None
    head: int
    words: int
    recall: float
    confidence: float
    controls: Mapping[str, float]
    offset: str
    control: str
    difference: Interval
    p: float
    corrected: float = 1.0
    verdict: Verdict = "not known"


def find_strongest(view: View) -> list[Strongest]:
    """Find the strongest attention head for all words, and for each label with enough words.

    Args:
        view: the heads, and where they look.

    Returns:
        All words first, then labels by their frequency. p is not corrected yet.
    """
    labels = [None, *view.words.list_labels()]
    found = (_find_for(view, label) for label in labels)
    return [each for each in found if each is not None]


def correct(views: Sequence[Sequence[Strongest]]) -> list[list[Strongest]]:
    """Correct the p-values of all of a model's comparisons (Holm), and add the verdicts.

    Args:
        views: what `find_strongest` returned, of each view.
    """
    corrected = iter(holm([each.p for view in views for each in view]))
    return [[_decide(each, next(corrected)) for each in view] for view in views]


def _decide(each: Strongest, p: float | None) -> Strongest:
    verdict = decide(each.difference.difference, p)
    return replace(each, corrected=1.0 if p is None else p, verdict=verdict)


def _find_for(view: View, label: str | None) -> Strongest | None:
    words = view.words
    chosen = words.with_label(label)
    choosing, scoring = chosen & words.choosing, chosen & ~words.choosing
    if min(choosing.sum(), scoring.sum()) < LEAST:
        return None
    head = int(view.right[choosing].sum(0).argmax())
    offset = words.find_offset(choosing)
    controls = {OFFSET: words.follow(offset)}
    controls |= {name: x for name, x in view.controls.items() if not name.startswith(OFFSET)}
    best = max(controls, key=lambda name: int(controls[name][choosing].sum()))
    ours = count_by_sentence(view.right[:, head], scoring, words.sentences)
    theirs = count_by_sentence(controls[best], scoring, words.sentences)
    both = {"head": ours, best: theirs}
    test = compare_scores(both, best, signature="", score=compute_share)["head"]
    assert test.p is not None and test.interval is not None  # of what is no baseline
    return Strongest(
        label,
        head,
        int(scoring.sum()),
        float(view.right[scoring, head].mean()),
        test.confidence,
        {name: float(right[scoring].mean()) for name, right in controls.items()},
        say_offset(offset),
        best,
        Interval(test.difference, *test.interval),
        test.p,
    )


def count_by_sentence(right: np.ndarray, chosen: np.ndarray, sentences: np.ndarray) -> np.ndarray:
    """Count chosen words, and those with the right parent, in each sentence that has any.

    Args:
        right: whether each word has the right parent.
        chosen: which words count.
        sentences: the number of each word's sentence.

    Returns:
        ``(sentences, 2)``.
    """
    _, order = np.unique(sentences[chosen], return_inverse=True)
    size = int(order.max()) + 1 if len(order) else 0
    every = np.bincount(order, minlength=size)
    return np.stack([np.bincount(order, right[chosen], minlength=size), every], 1)


def compute_share(totals: np.ndarray) -> np.ndarray:
    """Return the share of right words, given sums of the counts of `count_by_sentence`."""
    share: np.ndarray = totals[..., 0] / np.maximum(totals[..., 1], 1)
    return share
