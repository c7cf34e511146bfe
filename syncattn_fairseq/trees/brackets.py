"""Phrase structure in the brackets of the Penn Treebank, one tree per line."""

import re
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

from ..base.errors import BadParse, DataError
from ..base.text import read_lines
from .tree import Tree

ROOTS = ("", "ROOT", "TOP", "S1", "VROOT")
"""Labels of the outermost brackets that treebanks and parsers put around a whole tree."""
TRACE = "-NONE-"

# Only spaces and tabs end a word: other white space, such as U+00A0, is inside some parsers' words.
_TOKEN = re.compile(
    r"""
      \( [ \t]* (?P<tag> [^ \t()]+ ) [ \t]+ (?P<parenthesis> [()] ) [ \t]* \)
    | (?P<empty> \( [ \t]* [^ \t()]* [ \t]* \) )
    | \( [ \t]* (?P<label> [^ \t()]* )
    | (?P<close> \) )
    | (?P<word> [^ \t()]+ )
    """,
    re.VERBOSE,
)

#: Escapes of the Penn Treebank for brackets, slashes and stars in words, with the characters.
PTB_ESCAPES = dict(
    zip(
        ["-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-", "\\/", "\\*"],
        "()[]{}/*",
        strict=True,
    )
)
_ESCAPES = {**PTB_ESCAPES, "``": '"', "''": '"'}
_ESCAPE = re.compile("|".join(map(re.escape, _ESCAPES)))


def parse_tree(line: str) -> Tree | None:
    """Read a phrase structure tree in brackets; return None for a line without words.

    A bracket around the whole tree is removed if it has no label or one of ``ROOTS``, and only one
    constituent in it. Labels lose their function tags and indices (``NP-SBJ=2`` becomes ``NP``).
    Traces are removed, and brackets that hold nothing else. A parenthesis as a word is ``-LRB-``
    or ``-RRB-``, or the character itself if it is alone with its part of speech: ``(PUNCT ()``.

    Returns:
        The tree, or None if there is no word: an empty line, ``(())`` for a failure of the parser,
        or only traces.

    Raises:
        BadParse: the line is not exactly one tree.
    """
    if line.replace(" ", "") in ("", "()", "(())"):
        return None
    whole = Tree("", [])
    opened = [whole]
    for token in _TOKEN.finditer(line):
        match token.lastgroup:
            case "word":
                opened[-1].children.append(token["word"])
            case "parenthesis":
                opened[-1].children.append(
                    Tree(_read_category(token["tag"]), [token["parenthesis"]])
                )
            case "label":
                opened.append(Tree(_read_category(token["label"]), []))
            case "close" if len(opened) > 1:
                node = opened.pop()
                if node.children and node.label != TRACE:
                    opened[-1].children.append(node)
            case kind:
                what = "closes no bracket" if kind == "close" else "holds no word"
                raise _make_fault(f"{token[0][:60]!r} at column {token.start() + 1} {what}")
    if len(opened) > 1:
        raise _make_fault(f"brackets left open: {len(opened) - 1}")
    for child in whole.children:
        if isinstance(child, str):
            raise _make_fault(f"the word {child[:60]!r} is not in a bracket")
    if len(whole.children) > 1:
        raise _make_fault(f"{len(whole.children)} trees")
    tree = whole
    while tree.label in ROOTS and len(tree.children) == 1 and isinstance(tree.children[0], Tree):
        tree = tree.children[0]
    return tree if tree.children else None


def _make_fault(what: str) -> BadParse:
    return BadParse("not in brackets", f"{what}; write one whole tree in brackets on each line")


def _read_category(label: str) -> str:
    return label if label[:1] in "-=" else re.split("[-=]", label)[0]


def remove_binarisation(tree: Tree) -> Tree:
    """Undo binarisation: replace each node whose label begins with ``@`` by the node's children.

    Binarisation made these nodes, so that no node has more than two children. The root stays, and
    so do parts of speech, nodes with a single word.
    """
    whole = Tree(tree.label, [])
    agenda: list[tuple[Tree, Tree | str]] = [(whole, child) for child in reversed(tree.children)]
    while agenda:
        parent, node = agenda.pop()
        if isinstance(node, str):
            parent.children.append(node)
            continue
        if node.label.startswith("@") and isinstance(node.children[0], Tree):
            target = parent
        else:
            target = Tree(node.label, [])
            parent.children.append(target)
        agenda += [(target, child) for child in reversed(node.children)]
    return whole


def read_trees(path: Path | str) -> Iterator[Tree | None]:
    """Yield the tree on each line of a file, or None for a line without words (`parse_tree`).

    `DataError` names a line that is not a tree.
    """
    for number, line in enumerate(read_lines(path), 1):
        try:
            yield parse_tree(line)
        except BadParse as fault:
            raise DataError(f"{path}:{number}: {fault}") from None


def simplify_word(word: str) -> str:
    """Return a word without a parser's escapes, in NFKC, to compare a tree's words with a text.

    This undoes the escapes of the Penn Treebank (``-LRB-``, two backquotes or quotes, ``\\/``) and
    converts the word to Unicode's NFKC without white space, as sentencepiece does. Apply it to both
    sides, since a text may contain the escapes, too.
    """
    unescaped = _ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], word)
    return "".join(normalize("NFKC", unescaped).split())
