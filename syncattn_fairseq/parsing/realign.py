"""From the words of a parser to the words of the text: the same characters, cut otherwise.

Both sides are compared by their characters alone. Case and white space do not count, nor do
characters that nobody sees (soft hyphens, zero-width spaces); full-width and other compatibility
forms are the plain ones (Unicode's NFKD); the escapes of the Moses tokenizer (``&apos;``,
``&#91;``, ``@-@``) and of the Penn Treebank (``-LRB-``, ``\\/``) are undone; quotes of all shapes
are straight, a double one is two single ones, and long dashes are two short ones.

The words then form blocks, as small as they can be, that begin and end together on both sides. A
block's top is the parser's word nearest to the root, the first of several:

- The last text word of a block takes head and label of the top. If that head is in another block,
  it is the last text word there.
- Other text words of a block attach to the next one as ``goeswith``. (So does Deguchi's code for
  SyncAttn, where U+3000 cuts a word of EDA's in two; it suits Japanese, where heads come last.)

From a tree this always makes a tree: the head of a block's top is nearer to the root than the top,
and so is the top of that head's block, or nearer still.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from unicodedata import category, normalize

from ..base.errors import BadParse
from ..data.parses import check_tree
from .formats.analysis import Analysis, Surface
from .parser import Parse

INNER_LABEL = "goeswith"
"""Label of text words that are parts of one word of the parser's."""

_ESCAPES = {
    "&amp;": "&",
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&apos;": "'",
    "&bar;": "|",
    "&#39;": "'",
    "&#91;": "[",
    "&#93;": "]",
    "&#124;": "|",
    "@-@": "-",
    "-lrb-": "(",
    "-rrb-": ")",
    "-lsb-": "[",
    "-rsb-": "]",
    "-lcb-": "{",
    "-rcb-": "}",
    "\\/": "/",
    "\\*": "*",
}
_ESCAPES |= {escape.upper(): character for escape, character in _ESCAPES.items()}
# Runs of letters go through as they are, which saves most of the time.
_PIECE = re.compile(
    "|".join(["(?P<run>[A-Za-z0-9]+)", *map(re.escape, _ESCAPES), "."]), flags=re.DOTALL
)
# A double quote as two single ones: whoever writes `` or '' may also cut between the two.
_SHAPES = str.maketrans(
    dict.fromkeys('"“”„‟«»', "''")
    | dict.fromkeys("`‘’‚‛‹›", "'")
    | dict.fromkeys("–—―", "--")
    | {"‐": "-", "⁄": "/"}
)
_UNSEEN = ("Cc", "Cf", "Zs", "Zl", "Zp")


def realign(words: Sequence[str], analysis: Analysis) -> Parse | None:
    """Carry a parser's tree over to the words of the text; see the module.

    If the parser's words are the text's, their tree is returned as it is. Where words are written
    as one (CoNLL-U's ranges), the text may have either.

    Args:
        words: of the text.
        analysis: what the parser made of the same sentence.

    Returns:
        A tree over ``words``; None if the characters differ, or the parser's heads are no tree.
    """
    if analysis.heads is None:
        return None
    try:
        check_tree(analysis.heads)
    except BadParse:
        return None
    if list(words) == analysis.words:
        return Parse(list(analysis.heads), list(analysis.labels))
    for reading in analysis.list_readings():
        blocks = _find_blocks(words, reading)
        if blocks is not None:
            return _carry_over(analysis.heads, analysis.labels, *blocks)
    return None


def reduce_to_characters(words: Sequence[str]) -> str:
    """Return what counts of the characters of a sentence, however it is cut; see the module."""
    return _reduce_words(words)[0]


def _reduce_words(words: Sequence[str]) -> tuple[str, list[int]]:
    """Return the characters, and how many of them there are up to the end of each word."""
    pieces: list[str] = []
    size = 0
    sizes = [0]  # up to each character of the sentence as it is written
    # Words are joined first: a parser may have cut an escape into several words.
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
    """Return what counts of an escape or a character."""
    decomposed = normalize("NFKD", _ESCAPES.get(text, text)).casefold()
    seen = (character for character in decomposed if category(character) not in _UNSEEN)
    return "".join(seen).translate(_SHAPES)


def _find_blocks(
    words: Sequence[str], reading: Sequence[Surface]
) -> tuple[list[int], list[int]] | None:
    """Return the block of each text word and of each parser's word; None if characters differ."""
    ours, our_ends = _reduce_words(words)
    theirs, their_ends = _reduce_words([unit.form for unit in reading])
    ends = sorted(set(our_ends) & set(their_ends))
    if ours != theirs or not ends:
        return None
    # A word without a character that counts belongs to the block that ends with it.
    return [bisect_left(ends, end) for end in our_ends], [
        bisect_left(ends, end)
        for unit, end in zip(reading, their_ends, strict=True)
        for _ in range(unit.first, unit.past)
    ]


def _carry_over(
    heads: Sequence[int], labels: Sequence[str], ours: Sequence[int], theirs: Sequence[int]
) -> Parse:
    """Give the text's words heads and labels.

    Args:
        heads: of the parser's words.
        labels: of the parser's words.
        ours: the block of each text word.
        theirs: the block of each of the parser's words.
    """
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
