"""Mark added, missing and moved words in translations, and source words that are lost.

Words of the translation and of the reference that are equal are paired: first the longest common
subsequence of both, then what is left of each word, in order. A pair of the rest crosses others,
and its word is *moved*. A word of the translation without a pair is *added*, and one of the
reference *missing*. The number of pairs is that of the words that scores by groups count as found.
"""

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import regex

from syncattn_fairseq.data.spans import Span
from syncattn_fairseq.data.words import Link

from ..evaluation.grouped_text import match_words

#: Matches a character of a script without spaces, a word, or a sign.
_WORD = regex.compile(
    r"(?V1)[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*"
    r"|[\w\p{M}--[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]+|[^\w\s]"
)
#: The most pairs of a word of the translation and a word of the reference that are compared.
_MOST_PAIRS = 10**6
#: The most missing words in whose place a single added word may stand.
_FILLED = 3


@dataclass(frozen=True)
class SentenceLinks:
    """The words of a source and its reference, and the links between them, counted from 0."""

    source: Sequence[str]
    target: Sequence[str]
    links: Collection[Link]


@dataclass(frozen=True)
class Marked:
    """A translation cut into pieces that show its differences from the reference, with counts.

    Attributes:
        pieces: see `lay_out`; None if the sentence is too long.
        counts: the numbers of ``added``, ``missing``, ``moved`` words, and of ``untranslated``
            words of the source; empty if the sentence is too long.
        untranslated: these source words, with an ellipsis between words that are not neighbours.
    """

    pieces: list[list[str]] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    untranslated: str = ""


def mark_translations(
    texts: Iterable[str], reference: str, by_spaces: bool, linked: SentenceLinks | None = None
) -> list[Marked]:
    """Mark added, missing and moved words in several translations of one source sentence.

    Args:
        texts: the translations.
        reference: the reference.
        by_spaces: whether texts are words with spaces between them, see `split_words`.
        linked: the words and links of source and reference; None: unknown.
    """
    spans = split_words(reference, by_spaces)
    words = cut(reference, spans)
    places = None if linked is None else match_words(linked.target, words)
    sources: dict[int, set[int]] = defaultdict(set)
    if linked and places is not None:
        for source, target in linked.links:
            for place in places[target]:
                sources[place].add(source)

    def name_sources(some: Iterable[int]) -> str:
        known = {word for j in some for word in sources.get(j, ())}
        return _join_words(linked.source, known) if linked else ""

    marked = []
    for text in texts:
        own = split_words(text, by_spaces)
        pairs = pair_words(cut(text, own), words)
        if pairs is None:
            marked.append(Marked())
            continue
        lost: list[int] = []
        if linked and places is not None:
            lost = find_untranslated(pairs.find_gaps(), linked.links, linked.source, places)
        counts = {
            "added": len(pairs.added),
            "missing": len(pairs.missing),
            "moved": len(pairs.moved),
            "untranslated": len(lost),
        }
        pieces = lay_out(pairs, text, own, reference, spans, name_sources)
        marked.append(Marked(pieces, counts, _join_words(linked.source, lost) if linked else ""))
    return marked


def _join_words(words: Sequence[str], chosen: Iterable[int]) -> str:
    runs = _list_runs(sorted(chosen))
    return " … ".join(" ".join(words[number] for number in run) for run in runs)


@dataclass(frozen=True)
class WordPairs:
    """The pairing of equal words in a translation and its reference, counted from 0.

    Attributes:
        kept: pairs (of the translation, of the reference) in the same order in both.
        moved: pairs that cross others.
        added: words of the translation without a pair.
        missing: words of the reference without a pair.
    """

    kept: list[tuple[int, int]] = field(default_factory=list)
    moved: list[tuple[int, int]] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)

    def find_gaps(self) -> list[int]:
        """Return the missing words of the reference that no added words seem to replace.

        A place is between two kept pairs. Its missing words are returned if fewer than a third as
        many words are added there.
        """
        ours, theirs = [pair[0] for pair in self.kept], [pair[1] for pair in self.kept]
        added = Counter(bisect(ours, word) for word in self.added)
        missing = Counter(bisect(theirs, word) for word in self.missing)
        gaps = {place for place, count in missing.items() if _FILLED * added[place] < count}
        return [word for word in self.missing if bisect(theirs, word) in gaps]


def pair_words(ours: Sequence[str], reference: Sequence[str]) -> WordPairs | None:
    """Match equal words of a translation and its reference; None if too many words differ."""
    shortest = min(len(ours), len(reference))
    begin = next((n for n in range(shortest) if ours[n] != reference[n]), shortest)
    left = shortest - begin
    end = next((n for n in range(left) if ours[-1 - n] != reference[-1 - n]), left)
    inner, other = ours[begin : len(ours) - end], reference[begin : len(reference) - end]
    if len(inner) * len(other) > _MOST_PAIRS:
        return None
    kept = [(n, n) for n in range(begin)]
    kept += [(begin + i, begin + j) for i, j in _find_common(inner, other)]
    kept += [(len(ours) - n, len(reference) - n) for n in range(end, 0, -1)]
    waiting: dict[str, list[int]] = defaultdict(list)
    ours_kept = {i for i, _ in kept}
    theirs_kept = {j for _, j in kept}
    for j in range(len(reference) - 1, -1, -1):
        if j not in theirs_kept:
            waiting[reference[j]].append(j)
    moved, added = [], []
    for i in range(len(ours)):
        if i in ours_kept:
            continue
        if waiting[ours[i]]:
            moved.append((i, waiting[ours[i]].pop()))
        else:
            added.append(i)
    return WordPairs(kept, moved, added, sorted(j for left in waiting.values() for j in left))


def _find_common(ours: Sequence[str], reference: Sequence[str]) -> list[tuple[int, int]]:
    """Return the index pairs of a longest common subsequence of two lists of words."""
    rows = [[0] * (len(reference) + 1)]
    for word in reversed(ours):
        below, row = rows[-1], [0] * (len(reference) + 1)
        for j in range(len(reference) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if word == reference[j] else max(below[j], row[j + 1])
        rows.append(row)
    rows.reverse()
    pairs = []
    i = j = 0
    while i < len(ours) and j < len(reference):
        if ours[i] == reference[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif rows[i][j + 1] > rows[i + 1][j]:
            j += 1
        else:
            i += 1
    return pairs


def split_words(text: str, by_spaces: bool) -> list[Span]:
    """Return the character span of each word in a text.

    Args:
        text: a line.
        by_spaces: whether the text is words with spaces between them. If not, signs are words of
            their own, and so is each character of scripts without spaces.
    """
    found = regex.finditer(r"\S+", text) if by_spaces else _WORD.finditer(text)
    return [match.span() for match in found]


def cut(text: str, spans: Iterable[Span]) -> list[str]:
    """Return the words at the given character spans of a text."""
    return [text[begin:end] for begin, end in spans]


def find_untranslated(
    gaps: Collection[int],
    links: Iterable[Link],
    source: Sequence[str],
    places: Sequence[Collection[int]],
) -> list[int]:
    """Return the source words whose reference words are all missing, and not replaced by others.

    Args:
        gaps: the missing words of the reference, see `WordPairs.find_gaps`.
        links: between words of the source and of the reference.
        source: the words of the source; signs alone are never returned.
        places: for each reference word of ``links``, the words of the reference as ``gaps`` counts
            them that it overlaps, see `.grouped_text.match_words`.
    """
    linked: dict[int, set[int]] = defaultdict(set)
    for word, target in links:
        linked[word].update(places[target])
    missing = {*gaps}
    return [
        word
        for word, targets in sorted(linked.items())
        if targets and targets <= missing and any(map(str.isalnum, source[word]))
    ]


def lay_out(
    pairs: WordPairs,
    text: str,
    spans: Sequence[Span],
    reference: str,
    reference_spans: Sequence[Span],
    name_sources: Callable[[Sequence[int]], str],
) -> list[list[str]]:
    """Return a translation cut into pieces with their differences, in the order of display.

    Args:
        pairs: the pairing of words in translation and reference.
        text: the translation.
        spans: the spans of its words.
        reference: the reference.
        reference_spans: the spans of its words.
        name_sources: returns the source words that are linked with some words of the reference;
            empty if they are unknown.

    Returns:
        Pieces, each a kind, a text and perhaps a note. The kinds are ``""`` for words as in the
        reference, ``+`` for added words, ``-`` for missing ones, whose note is what they translate,
        and ``<`` or ``>`` for moved ones, which are farther left or right in the reference. A text
        begins with a space if there is one before it.
    """
    kinds = {i: "" for i, _ in pairs.kept} | dict.fromkeys(pairs.added, "+")
    ours, theirs = [pair[0] for pair in pairs.kept], [pair[1] for pair in pairs.kept]
    kinds |= {i: "<" if bisect(theirs, j) < bisect(ours, i) else ">" for i, j in pairs.moved}
    missing: dict[int, list[int]] = defaultdict(list)
    for j in pairs.missing:
        missing[bisect(theirs, j)].append(j)
    pieces: list[list[str]] = []
    for i in range(len(spans) + 1):
        gap = bisect(ours, i - 1)  # before word i; entered after a kept word
        if i == 0 or kinds[i - 1] == "":
            for run in _list_runs(missing[gap]):
                note, piece = name_sources(run), _slice(reference, reference_spans, run[0], run[-1])
                pieces.append(["-", piece, note] if note else ["-", piece])
        if i < len(spans):
            kind, piece = kinds[i], _slice(text, spans, i, i)
            if pieces and pieces[-1][0] == "-" and i == 0:
                piece = f" {piece}"
            if pieces and pieces[-1][0] == kind in ("", "+"):
                pieces[-1][1] += piece
            else:
                pieces.append([kind, piece])
    if pieces:
        pieces[0][1] = pieces[0][1].lstrip()
    return pieces


def _list_runs(numbers: Iterable[int]) -> list[list[int]]:
    """Split numbers into runs of consecutive numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _slice(text: str, spans: Sequence[Span], first: int, last: int) -> str:
    """Return the text from one word to another, with a space in front if the text has one."""
    begin, end = spans[first][0], spans[last][1]
    space = " " if begin and text[begin - 1].isspace() else ""
    return space + " ".join(text[begin:end].split())
