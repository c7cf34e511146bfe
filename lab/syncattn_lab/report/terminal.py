"""Draw parses, links and trees as plain text, for a terminal.

In a parse, each word has its own line, so that sentences of any length and script fit. Arcs are on
the left of the word, with a tip at the dependent, and its head's name is on the right.
"""

from collections.abc import Iterable, Sequence
from unicodedata import combining, east_asian_width

from syncattn_fairseq.data.words import Link
from syncattn_fairseq.trees.tree import Tree

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_LINES = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"
"""Box-drawing characters, by the sum of the numbers of the directions that each connects."""


def draw_arcs(
    words: Sequence[str],
    heads: Sequence[int | None],
    gold: Sequence[int] | None = None,
    labels: Sequence[str] | None = None,
) -> str:
    """Draw a sentence's dependency arcs as text; they may have cycles and several roots.

    Args:
        words: the words of the sentence.
        heads: the dependency head of each word, from 1; 0 for the root. None: the gold head is to
            the right of the word, where a decoder cannot look.
        gold: the gold heads. A wrong head is marked with a cross, followed by the gold head.
        labels: the dependency label of each word.
    """
    arcs = [(word, head) for word, head in enumerate(heads, 1) if head]
    lanes = _lanes(arcs)
    width = max(lanes.values(), default=-1) + 1
    cells = [[0] * width for _ in words]
    for (word, head), lane in lanes.items():
        top, bottom = min(word, head), max(word, head)
        for row in range(top, bottom):
            cells[row - 1][lane] |= _DOWN
            cells[row][lane] |= _UP
        for row in (word, head):
            cells[row - 1][lane] |= _RIGHT
            for inner in range(lane):
                cells[row - 1][inner] |= _LEFT | _RIGHT
    lines = []
    size = max(map(_width, words), default=0)
    for number, (text, parent) in enumerate(zip(words, heads, strict=True), 1):
        joined = any(number in arc for arc in arcs)
        drawn = "".join(_LINES[cell] for cell in reversed(cells[number - 1]))
        tip = "▸" if parent else ("─" if joined else " ")
        named = words[parent - 1] if parent else "(root)" if parent == 0 else "…"
        if labels:
            named = f"{labels[number - 1]}: {named}"
        if gold and parent is not None and gold[number - 1] != parent:
            right = gold[number - 1]
            named += f"  ✗ {words[right - 1] if right else '(root)'}"
        lines.append(f"{drawn}{tip} {text}{' ' * (size - _width(text))}  {named}")
    return "\n".join(lines)


def draw_links(links: Iterable[Link], source: Sequence[str], target: Sequence[str]) -> str:
    """Return a line for each target word, with the source words of the word's links."""
    sources: dict[int, list[str]] = {}
    for i, j in sorted(links):
        sources.setdefault(j, []).append(source[i])
    return "  ".join(f"{word}–{'+'.join(sources.get(j, '∅'))}" for j, word in enumerate(target))


def draw_tree(tree: Tree) -> str:
    """Return a tree as brackets without labels: ``((the (old man)) (saw it))``."""
    parts: list[str] = []
    agenda: list[Tree | str] = [tree]
    while agenda:
        node = agenda.pop()
        if isinstance(node, str):
            parts.append(node)
        elif len(node.children) == 1:
            agenda.append(node.children[0])
        else:
            parts.append("(")
            agenda += [")", *reversed(node.children)]
    return " ".join(parts).replace("( ", "(").replace(" )", ")")


def _lanes(arcs: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Return the column of each arc, the nearest to the words where it meets no other arc."""
    taken: list[list[tuple[int, int, int]]] = []
    lanes = {}
    for word, head in sorted(arcs, key=lambda arc: (abs(arc[0] - arc[1]), min(arc))):
        top, bottom = min(word, head), max(word, head)
        arc = (top, bottom, head)
        free = (lane for lane, others in enumerate(taken) if not _meets_any(arc, others))
        lane = next(free, len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append(arc)
        lanes[word, head] = lane
    return lanes


def _meets_any(arc: tuple[int, int, int], others: Iterable[tuple[int, int, int]]) -> bool:
    """Tell whether an arc (first row, last row, head) overlaps others of the same column.

    Arcs of the same head may share the row of the head.
    """
    top, bottom, head = arc
    for first, last, other in others:
        apart = bottom < first or last < top
        shares_head = head == other and (bottom == first or last == top)
        if not apart and not shares_head:
            return True
    return False


def _width(text: str) -> int:
    return sum(
        0 if combining(character) else 1 + (east_asian_width(character) in "WF")
        for character in text
    )
