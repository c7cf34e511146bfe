"""Transfer trees from a parser's words to the text's words, which are split differently.

Only the characters of the two sides are compared. Case, white space and invisible characters (soft
hyphens, zero-width spaces) are ignored; full-width and other compatibility forms become plain ones
(Unicode's NFKD); the escapes of the Moses tokenizer (``&apos;``, ``&#91;``, ``@-@``) and of the
Penn Treebank (``-LRB-``, ``\\/``) are undone; all quotes become straight, a double quote becomes
two single ones, and a long dash two short ones.

The words then form the smallest blocks that begin and end together on both sides. A block's top is
the parser's word nearest to the root, or the first of several:

- The last text word of a block takes the top's head and label. If that head is in another block,
  the last text word there becomes the head.
- Each other text word of a block is attached to the next one as ``goeswith``. (Deguchi's code for
  SyncAttn does the same if U+3000 splits an EDA word; it suits Japanese, where heads come last.)

The result of a tree is always a tree: the head of a block's top is nearer to the root than the top,
and the top of that head's block is at least as near.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from html import unescape
from itertools import accumulate
from unicodedata import category, normalize

from ..data.spans import Span, split_span
from ..trees.brackets import PTB_ESCAPES
from .formats.parsed_sentence import Analysis, Surface
from .parser import Parse

INNER_LABEL = "goeswith"
"""Label of the words of the text that are parts of one word of the parser."""

_ESCAPES = {
    escape: unescape(escape)
    for escape in ["&amp;", "&lt;", "&gt;", "&quot;", "&apos;", "&#39;", "&#91;", "&#93;", "&#124;"]
}
_ESCAPES |= {"&bar;": "|", "@-@": "-"} | PTB_ESCAPES
_ESCAPES |= {
    case(escape): text for escape, text in _ESCAPES.items() for case in (str.lower, str.upper)
}
# Runs of letters need no change, which saves most of the time.
_PIECE = re.compile(
    "|".join(["(?P<run>[A-Za-z0-9]+)", *map(re.escape, _ESCAPES), "."]), flags=re.DOTALL
)
# A double quote counts as two single ones: `` and '' may also be split in the middle.
_SHAPES = str.maketrans(
    dict.fromkeys('"“”„‟«»', "''")
    | dict.fromkeys("`‘’‚‛‹›", "'")
    | dict.fromkeys("–—―", "--")
    | {"‐": "-", "⁄": "/"}
)
_UNSEEN = ("Cc", "Cf", "Zs", "Zl", "Zp")


def realign(words: Sequence[str], analysis: Analysis) -> Parse | None:
    """Transfer a parser's tree to the words of the text; None if their characters differ.

    If the parser's words are the text's, the tree is returned unchanged. If words are written as
    one (CoNLL-U's ranges), the text may have either form.
    """
    assert analysis.heads is not None
    if list(words) == analysis.words:
        return Parse(list(analysis.heads), list(analysis.labels))
    for reading in analysis.list_readings():
        blocks = _find_blocks(words, reading)
        if blocks is not None:
            return _carry_over(analysis.heads, analysis.labels, *blocks)
    return None


def place_words(sentence: str, analysis: Analysis) -> Parse | None:
    """Find the spans of a parser's words in a raw sentence; None if the characters differ.

    Words that are written as one share its span, unless they are the parts of it (`split_span`);
    so do words that divide a character of the sentence, such as two quotes for one.
    """
    assert analysis.heads is not None
    if not sentence.strip():
        return None
    for reading in analysis.list_readings():
        blocks = _find_blocks([*sentence], reading)
        if blocks is None:
            continue
        places: dict[int, list[int]] = {}
        for place, block in enumerate(blocks[0]):
            if not sentence[place].isspace():
                places.setdefault(block, []).append(place)
        of_units = [blocks[1][unit.first] for unit in reading]
        spans: list[Span] = []
        for unit, block in zip(reading, of_units, strict=True):
            # A word that nobody sees, before all others, is with the first of these.
            found = places.get(block) or next(iter(places.values()))
            span, forms = (found[0], found[-1] + 1), analysis.words[unit.first : unit.past]
            alone = of_units.count(block) == 1
            surface = sentence[slice(*span)]
            spans += split_span(span, surface, forms) if alone else [span] * len(forms)
        heads, labels = list(analysis.heads), list(analysis.labels)
        return Parse(heads, labels, (), list(analysis.words), spans)
    return None


def reduce_to_characters(words: Sequence[str]) -> str:
    """Return the normalised characters of a sentence, independent of tokenisation."""
    return _reduce_words(words)[0]


def _reduce_words(words: Sequence[str]) -> tuple[str, list[int]]:
    """Return the normalised characters of a sentence, and where each word ends in them."""
    pieces: list[str] = []
    size = 0
    sizes = [0]  # normalised characters up to each original one
    # Words are joined first: a parser may have split an escape into several words.
    for match in _PIECE.finditer("".join(words)):
        text = match[0]
        if match["run"]:
            piece = text.lower()
            sizes += range(size + 1, size + len(text) + 1)
        else:
            piece = _reduce_piece(text)
            sizes += [size + len(piece)] * len(text)
        pieces.append(piece)
        size += len(piece)
    return "".join(pieces), [sizes[end] for end in accumulate(map(len, words))]


@cache
def _reduce_piece(text: str) -> str:
    """Return the normalised characters of an escape or of a single character."""
    decomposed = normalize("NFKD", _ESCAPES.get(text, text)).casefold()
    seen = (character for character in decomposed if category(character) not in _UNSEEN)
    return "".join(seen).translate(_SHAPES)


def _find_blocks(
    words: Sequence[str], reading: Sequence[Surface]
) -> tuple[list[int], list[int]] | None:
    """Return the block of each text word and parser word; None if the characters differ."""
    ours, our_ends = _reduce_words(words)
    theirs, their_ends = _reduce_words([unit.form for unit in reading])
    ends = sorted(set(our_ends) & set(their_ends))
    if ours != theirs or not ends:
        return None
    # A word without normalised characters belongs to the block that ends with it.
    return [bisect_left(ends, end) for end in our_ends], [
        bisect_left(ends, end)
        for unit, end in zip(reading, their_ends, strict=True)
        for _ in range(unit.first, unit.past)
    ]


def _carry_over(
    heads: Sequence[int], labels: Sequence[str], ours: Sequence[int], theirs: Sequence[int]
) -> Parse:
    """Return the parse of the text's words; ``ours`` and ``theirs`` are the words' blocks."""
    last = {block: word for word, block in enumerate(ours, 1)}
    members: dict[int, list[int]] = {}
    for word, block in enumerate(theirs):
        members.setdefault(block, []).append(word)
    parse = Parse([], [])
    for word, block in enumerate(ours, 1):
        if word < last[block]:
            parse.heads.append(word + 1)
            parse.labels.append(INNER_LABEL)
        else:
            top, *others = members[block]
            if others:
                top = min(members[block], key=lambda member: _measure_depth(heads, member))
            head = heads[top]
            parse.heads.append(last[theirs[head - 1]] if head else 0)
            parse.labels.append(labels[top])
    return parse


def _measure_depth(heads: Sequence[int], word: int) -> int:
    depth = 0
    while heads[word]:
        word = heads[word] - 1
        depth += 1
    return depth
