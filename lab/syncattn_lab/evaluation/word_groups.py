"""Recall and precision of words in groups, such as their dependency label or frequency.

A word of the reference is found if the translation has it. Words are counted as BLEU counts them:
of a word that is n times in the reference and m times in the translation, min(n, m) are found.
Where that is not all of them, it does not say which, and each of the n counts as min(n, m) / n.
Recall is the share of the reference's words that are found, and precision the share of the
translation's. So does compare-mt (Neubig et al. 2019), which takes the first of the n instead.

By label, part of speech, arc, depth and whether training had the word, a group is one of *source*
words. A word of the reference is in the groups of the source words that it is linked with, in each
once. These links are the same for all systems. For precision, a translation needs links with the
source of its own. By frequency, a word is in the group of its own number in the training text, and
by length, in the group of its sentence; there, nothing needs links.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.option_fields import flag
from syncattn_fairseq.data.words import Link

from .attachment import Heads
from .group_kinds import KINDS
from .group_scores import (
    ALL,
    Counts,
    GroupScore,
    GroupTable,
    check_baseline,
    score_groups,
)
from .length import BUCKETS, find_bucket

LINK, UNLINKED = "link", "no link"
"""The kind, and the name, of the group of words without a link to a source word."""

Words: TypeAlias = Sequence[Sequence[str]]
"""The words of each sentence of a text."""
Links: TypeAlias = Sequence[Collection[Link] | None]
"""The word links (source, target) of each sentence, from 0; None where they are not known."""
_Names: TypeAlias = tuple[str, ...]
"""The names of the groups that a word belongs to."""

_ARCS = ("root", "1", "2", "3-4", "5+", "parent to the left", "parent to the right")
_ARC_STARTS = (2, 3, 5)
_DEPTHS = ("root", "1", "2", "3", "4", "5+", "in a cycle")
_FREQUENCIES = ("0", "1-9", "10-99", "100-999", "1000-9999", "10000+")
_SEEN = ("unseen", "seen")
_ORDERS = {
    "arc": _ARCS,
    "depth": _DEPTHS,
    "frequency": _FREQUENCIES,
    "length": BUCKETS,
    "unseen": _SEEN,
}


@dataclass(frozen=True)
class GroupedText:
    """The words of a test set, with the annotation by which the words are grouped.

    Missing annotation is None.

    Attributes:
        references: the words of each reference, split as the translations are.
        source: the words of each source.
        links: the links between source and reference; of a sentence without links, no word is
            counted where groups are of source words.
        source_heads: the parent of each source word, from 1; 0 for the root. None for a sentence
            without a parse, of which no word is counted where a parse is needed.
        source_labels: the dependency label of each source word.
        source_tags: its part of speech.
        source_training: how often training had a source word, by the word.
        target_training: how often training had a word of the target, by the word.
    """

    references: Words
    source: Words | None = None
    links: Links | None = None
    source_heads: Sequence[Heads | None] | None = None
    source_labels: Sequence[Sequence[str] | None] | None = None
    source_tags: Sequence[Sequence[str] | None] | None = None
    source_training: Mapping[str, int] | None = None
    target_training: Mapping[str, int] | None = None


@dataclass(frozen=True)
class SystemWords:
    """The words of a system's translations, and their links to the source.

    Attributes:
        words: the words of each translation.
        links: the links between source and translation, for precision by groups of source words.
    """

    words: Words
    links: Links | None = None


def list_kinds(text: GroupedText) -> list[str]:
    """List the kinds of groups, such as labels, for which a test set has the annotation."""
    return [kind for kind in KINDS if not _find_missing(text, kind)]


def score_word_groups(
    text: GroupedText,
    systems: Mapping[str, SystemWords],
    kinds: Sequence[str],
    baseline: str | None = None,
) -> list[GroupScore]:
    """Compute recall and precision of translated words: of all words, and of each group.

    Args:
        text: the test set.
        systems: the translations of each system, by its name.
        kinds: what words are grouped by, of `KINDS`.
        baseline: the system that the others are tested against; None: nothing is tested.

    Returns:
        A score for each kind, measure, group and system, in this order; `ALL` is the first kind.
        Labels and parts of speech begin with the most frequent, and other groups are in their
        order. Where groups are of source words, `UNLINKED` follows all kinds. Precision of groups
        of source words is left out where translations have no links. All p are corrected together.

    Raises:
        DataError: a kind is unknown, or needs what the test set lacks; numbers of sentences or
            words differ; a link is outside its sentence; or no system is the baseline.
    """
    check_baseline(baseline, systems)
    _check(text, systems, kinds)
    of_source = [kind for kind in kinds if kind in _OF_SOURCE]
    same = _find_same(text, of_source)
    tables = []
    for kind in (ALL, *kinds, *([LINK] if of_source else [])):
        known = _ORDERS.get(kind), same.get(kind, {})
        recalls = {
            name: _count(text, kind, text.references, text.links, system.words)
            for name, system in systems.items()
        }
        tables.append(GroupTable(kind, "recall", recalls, *known))
        precisions = {
            name: _count(text, kind, system.words, system.links, text.references)
            for name, system in systems.items()
            if system.links is not None or kind not in (LINK, *_OF_SOURCE)
        }
        tables.append(GroupTable(kind, "precision", precisions, *known))
    return score_groups(tables, baseline)


def _find_same(text: GroupedText, kinds: Iterable[str]) -> dict[str, dict[str, tuple[str, str]]]:
    """Return, by kind and group, the first group that holds the same source words.

    Groups without such a group are left out: the root has one, since label, arc and depth name it.
    """
    first: dict[bytes, tuple[str, str]] = {}
    same: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for kind in kinds:
        held: dict[str, array[int]] = defaultdict(lambda: array("q"))
        for index, words in enumerate(_OF_SOURCE[kind](text)):
            for place, names in enumerate(words or ()):
                for name in names:
                    held[name].extend((index, place))
        for name, places in held.items():
            earlier = first.setdefault(places.tobytes(), (kind, name))
            if earlier != (kind, name):
                same[kind][name] = earlier
    return same


# ---- what is compared


def _count(text: GroupedText, kind: str, ours: Words, links: Links | None, theirs: Words) -> Counts:
    """Count our words by group, and also our words with an equal word in the other text.

    Args:
        text: the test set.
        kind: the kind of the groups.
        ours: the words that are counted, of the references or of the translations.
        links: between the source and our words.
        theirs: the words among which ours are searched.
    """
    counts: Counts = defaultdict(lambda: np.zeros((len(ours), 2)))
    groups = _list_groups(text, kind, ours, links)
    for index, (words, others, names) in enumerate(zip(ours, theirs, groups, strict=True)):
        shares = _find_shares(words, others)
        for share, of_word in zip(shares, names or (), strict=False):
            for name in of_word:
                counts[name][index] += share, 1
    return dict(counts)


def _find_shares(words: Sequence[str], others: Sequence[str]) -> list[float]:
    """Return, for each word, the share of its copies in the other words, ``min(n, m) / n``."""
    here, there = Counter(words), Counter(others)
    return [min(here[word], there[word]) / here[word] for word in words]


def _list_groups(
    text: GroupedText, kind: str, words: Words, links: Links | None
) -> Iterator[Sequence[_Names] | None]:
    """Yield the groups of each word of a sentence; None for a sentence that is not counted."""
    if kind == ALL:
        yield from ([(ALL,)] * len(sentence) for sentence in words)
    elif kind == "frequency":
        known = text.target_training or {}
        for sentence in words:
            yield [(_find_frequency(known.get(word, 0)),) for word in sentence]
    elif kind == LINK:
        for sentence, linked in zip(words, links or (), strict=True):
            yield None if linked is None else _find_unlinked(linked, len(sentence))
    elif kind == "length":
        for source, sentence in zip(text.source or (), words, strict=True):
            yield [(find_bucket(len(source)),)] * len(sentence)
    else:
        of_source = _OF_SOURCE[kind](text)
        for sentence, linked, names in zip(words, links or (), of_source, strict=True):
            if linked is None or names is None:
                yield None
            else:
                yield _follow(linked, names, len(sentence))


def _follow(links: Iterable[Link], of_source: Sequence[_Names], size: int) -> list[_Names]:
    """Return the groups of target words: the groups of the source words linked with each word."""
    found: list[dict[str, None]] = [{} for _ in range(size)]
    for source, target in links:
        found[target] |= dict.fromkeys(of_source[source])
    return [tuple(names) for names in found]


def _find_unlinked(links: Iterable[Link], size: int) -> list[_Names]:
    linked = {target for _, target in links}
    return [() if target in linked else (UNLINKED,) for target in range(size)]


def _find_frequency(count: int) -> str:
    return _FREQUENCIES[min(len(str(count)) if count else 0, len(_FREQUENCIES) - 1)]


def _name_arcs(heads: Heads) -> list[_Names]:
    arcs: list[_Names] = []
    for word, head in enumerate(heads, 1):
        if head == 0:
            arcs.append((_ARCS[0],))
            continue
        length = _ARCS[1 + sum(abs(head - word) >= start for start in _ARC_STARTS)]
        arcs.append((length, _ARCS[-2] if head < word else _ARCS[-1]))
    return arcs


def _name_depths(heads: Heads) -> list[_Names]:
    return [(_find_depth(heads, word),) for word in range(1, len(heads) + 1)]


def _find_depth(heads: Heads, word: int) -> str:
    """Return the number of arcs from a word up to the root, as text; heads need not form a tree."""
    for depth in range(len(heads)):
        word = heads[word - 1]
        if word == 0:
            return _DEPTHS[min(depth, 5)]
    return _DEPTHS[-1]


def _by_heads(name: Callable[[Heads], list[_Names]]) -> _Namer:
    def names(text: GroupedText) -> Iterator[list[_Names] | None]:
        return (name(heads) if heads else None for heads in text.source_heads or ())

    return names


def _by_annotation(field: str) -> _Namer:
    def names(text: GroupedText) -> Iterator[list[_Names] | None]:
        rows: Sequence[Sequence[str] | None] = getattr(text, field)
        for row in rows:
            yield [(name,) for name in row] if row else None

    return names


def _by_seen(text: GroupedText) -> Iterator[list[_Names] | None]:
    known = text.source_training or {}
    for words in text.source or ():
        yield [(_SEEN[known.get(word, 0) > 0],) for word in words]


_Namer: TypeAlias = Callable[[GroupedText], Iterator["list[_Names] | None"]]
#: The groups of source words, for each sentence.
_OF_SOURCE: dict[str, _Namer] = {
    "label": _by_annotation("source_labels"),
    "pos": _by_annotation("source_tags"),
    "arc": _by_heads(_name_arcs),
    "depth": _by_heads(_name_depths),
    "unseen": _by_seen,
}
#: What each kind needs of the test set.
_NEEDS = {
    "label": ("links", "source_labels"),
    "pos": ("links", "source_tags"),
    "arc": ("links", "source_heads"),
    "depth": ("links", "source_heads"),
    "frequency": ("target_training",),
    "length": ("source",),
    "unseen": ("links", "source", "source_training"),
}


def _find_missing(text: GroupedText, kind: str) -> list[str]:
    return [name for name in _NEEDS[kind] if getattr(text, name) is None]


def _check(text: GroupedText, systems: Mapping[str, SystemWords], kinds: Sequence[str]) -> None:
    for kind in kinds:
        if kind not in KINDS:
            raise DataError(f"words cannot be grouped by {kind!r}; choose from {', '.join(KINDS)}")
        if missing := _find_missing(text, kind):
            raise DataError(f"--by {kind} needs {' and '.join(map(flag, missing))}")
    size = len(text.references)
    per_sentence = ("source", "links", "source_heads", "source_labels", "source_tags")
    rows = {flag(name): getattr(text, name) for name in per_sentence}
    for name, system in systems.items():
        rows |= {f"system {name}": system.words, f"links of system {name}": system.links}
    for name, entries in rows.items():
        if entries is not None and len(entries) != size:
            raise DataError(
                f"{name}: has {len(entries)} sentences, but there are {size} references"
            )
    of_source = [getattr(text, name) for name in per_sentence if name != "links"]
    known = [row for row in of_source if row is not None]
    sentences = enumerate(zip(*known, strict=True))
    sizes = [_check_sizes(index, annotations) for index, annotations in sentences]
    for name, words, links in (
        ("--links", text.references, text.links),
        *((f"system {name}", system.words, system.links) for name, system in systems.items()),
    ):
        if links is not None:
            _check_links(name, links, sizes, words)


def _check_sizes(index: int, annotations: Sequence[Sequence[object] | None]) -> int | None:
    """Return the number of source words of a sentence, if it is known."""
    sizes = {len(one) for one in annotations if one}
    if len(sizes) > 1:
        found = " and ".join(map(str, sorted(sizes)))
        raise DataError(f"sentence {index + 1}: words, parents, labels or tags of {found} words")
    return next(iter(sizes), None)


def _check_links(name: str, links: Links, sizes: Sequence[int | None], words: Words) -> None:
    for index, (linked, sentence) in enumerate(zip(links, words, strict=True)):
        size = sizes[index] if sizes else None
        for source, target in linked or ():
            if not 0 <= target < len(sentence) or source < 0 or not (size is None or source < size):
                raise DataError(
                    f"{name}: sentence {index + 1}: link {source}-{target}, counted from 0, lies "
                    f"outside the {'?' if size is None else size} source or the {len(sentence)} "
                    "target words"
                )
