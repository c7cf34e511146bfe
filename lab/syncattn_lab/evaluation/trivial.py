"""Translations made without a model: the source itself, or word by word."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from syncattn_fairseq.data.words import Link

from .word_groups import GroupedText


def copy_source(text: GroupedText) -> list[str] | None:
    """Return the source sentences as their own translations; None if the sources are not known."""
    return None if text.source is None else [" ".join(words) for words in text.source]


def translate_by_word(text: GroupedText) -> list[str] | None:
    """Translate each source word alone, in source order; None without links or sources.

    A word becomes what it is most often linked with in the other sentences of the test set, the
    first in the alphabet of several. A word without a link there stays as it is. The sentence
    itself is left out, since its links tell what its reference says.
    """
    if text.source is None or text.links is None:
        return None
    phrases = [
        [*_list_phrases(source, target, links or ())]
        for source, target, links in zip(text.source, text.references, text.links, strict=True)
    ]
    every: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in phrases:
        for word, phrase in sentence:
            every[word][phrase] += 1
    return [
        " ".join(_choose(words, sentence, every))
        for words, sentence in zip(text.source, phrases, strict=True)
    ]


def _list_phrases(
    source: Sequence[str], target: Sequence[str], links: Collection[Link]
) -> Iterator[tuple[str, str]]:
    """Yield each linked source word with the target words of its links, in their order."""
    linked: dict[int, list[int]] = defaultdict(list)
    for i, j in sorted(links):
        linked[i].append(j)
    for i, places in linked.items():
        yield source[i], " ".join(target[j] for j in places)


def _choose(
    words: Sequence[str],
    own: Sequence[tuple[str, str]],
    every: Mapping[str, Counter[str]],
) -> Iterator[str]:
    here = Counter(own)
    for word in words:
        counts = {
            phrase: count - here[word, phrase] for phrase, count in every.get(word, {}).items()
        }
        best = min(counts, key=lambda phrase: (-counts[phrase], phrase), default="")
        yield best if counts.get(best, 0) > 0 else word
