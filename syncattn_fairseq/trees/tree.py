"""Trees, and output as CoNLL-U or as tokens for a translation model.

Tokens are separated by white space; do not split them into subwords::

    (S (NP (DT) (NN) ) (VP (VBZ) ) (.) )            the man sleeps .
    (root (nsubj (det) XX ) XX (punct) )            the same as dependencies
    (S (NP (DT ▁the ) (NN ▁man ) ) (VP ...          with the words' subwords

Currey and Heafield (WMT 2019) train on "linearized parses"; the choices here are ours. Words are
left out by default, as by Vinyals et al. (2015): they are in the input, and without them the
sequence is short and its vocabulary a few dozen brackets. Parts of speech stay, one token for each
word, so that the tree over the words can be recovered. Closing brackets have no label, since the
opening ones do. A word that is not alone in its bracket becomes ``XX``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat, takewhile

WORD = "XX"
#: CoNLL-U columns of a word without analysis: lemma, both parts of speech and features.
UNKNOWN = ("_", "_", "_", "_")


@dataclass
class Tree:
    """A constituent of a phrase structure tree, with everything below it.

    Attributes:
        label: the category of the constituent; the part of speech directly above a word.
        children: constituents, and words as written in the brackets.
    """

    label: str
    children: list[Tree | str]

    def leaves(self) -> Iterator[str]:
        """Yield the words of the tree from left to right."""
        agenda: list[Tree | str] = [self]
        while agenda:
            node = agenda.pop()
            if isinstance(node, Tree):
                agenda += reversed(node.children)
            else:
                yield node

    def __str__(self) -> str:
        """Return the tree in brackets; parentheses in words become ``-LRB-`` and ``-RRB-``."""
        leaves = (leaf.replace("(", "-LRB-").replace(")", "-RRB-") for leaf in self.leaves())
        return " ".join(linearise(self, leaves))


def linearise(tree: Tree, leaves: Iterable[str] | None = None) -> list[str]:
    """Return the tokens of a linearised tree: brackets such as ``(NP`` and ``)``, and words.

    The tree is a phrase structure tree, or comes from `bracket_dependencies`. ``leaves`` are
    written in place of the tree's words, one for each word in order; None leaves the words out.
    """
    written = None if leaves is None else iter(leaves)
    tokens = []
    agenda: list[Tree | str | None] = [tree]  # None: close a bracket
    while agenda:
        node = agenda.pop()
        if node is None:
            tokens.append(")")
        elif isinstance(node, str):
            tokens.append(WORD if written is None else next(written))
        elif written is None and len(node.children) == 1 and isinstance(node.children[0], str):
            tokens.append(f"({node.label})")
        else:
            tokens.append(f"({node.label}")
            agenda += [None, *reversed(node.children)]
    return tokens


def bracket_dependencies(heads: Sequence[int], labels: Sequence[str], words: Sequence[str]) -> Tree:
    """Convert a dependency tree into brackets, in which a word stands between its dependents.

    In a non-projective tree, the words do not keep the order of the sentence. The heads are
    1-based, 0 = root, and form a tree (`check_tree`); brackets have the words' labels.
    """
    nodes = [Tree(label, []) for label in ("", *labels)]  # the first one is above the root
    # In this order a word comes after its dependents to the left and before those to the right.
    for node, head, word in zip(nodes[1:], heads, words, strict=True):
        node.children.append(word)
        nodes[head].children.append(node)
    return nodes[heads.index(0) + 1]


def format_conllu(
    words: Sequence[str],
    heads: Iterable[int],
    labels: Iterable[str],
    morphology: Iterable[Sequence[str]] | None = None,
    number: int | None = None,
    where: tuple[str, Sequence[tuple[int, int]]] | None = None,
) -> str:
    """Return a sentence with its dependency tree as CoNLL-U, including the blank line after it.

    Args:
        words, heads, labels: the words, their 1-based dependency heads, 0 = root, and labels.
        morphology: lemma, both parts of speech and features of each word; None: unknown.
        number: the ``sent_id`` of the sentence; None: it has none.
        where: the raw sentence, and the span of each word in it; words with the same span become
            a multiword token. None: the words are separated by spaces.
    """
    rows = [] if number is None else [f"# sent_id = {number}"]
    sentence, spans = where or (" ".join(words), ())
    rows.append(f"# text = {sentence}")
    columns = zip(words, morphology or repeat(UNKNOWN), heads, labels)  # noqa: B905  (repeat)
    places = dict(enumerate(spans, 1))
    for index, (word, known, head, label) in enumerate(columns, 1):
        after = "_"
        if places and places[index] != places.get(index - 1):
            begin, end = places[index]
            last = index + sum(1 for _ in takewhile(places[index].__eq__, spans[index:]))
            # Without it, a space follows.
            after = "_" if sentence[end : end + 1].strip() == "" else "SpaceAfter=No"
            if last > index:
                rows.append("\t".join([f"{index}-{last}", sentence[begin:end], *"_" * 7, after]))
                after = "_"
        rows.append("\t".join([str(index), word, *known, str(head), label, "_", after]))
    return "\n".join(rows) + "\n\n"
