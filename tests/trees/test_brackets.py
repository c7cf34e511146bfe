from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse, DataError
from syncattn_fairseq.trees.brackets import (
    ROOTS,
    parse_tree,
    read_trees,
    remove_binarisation,
    simplify_word,
)
from syncattn_fairseq.trees.tree import Tree

labels = st.sampled_from(["S", "NP", "ADVP|PRT", "$,", "PRP$", "-LRB-", "<X>"])
tags = st.sampled_from(["DT", "NN", ".", ",", "``", "-RRB-", "$*LRB*", "="])
words = st.text(st.sampled_from("ab|-=`'*\\<>猫\u00a0"), min_size=1, max_size=4) | st.sampled_from(
    ["|", "||", "-LRB-", "-NONE-", "*T*-1", "ROOT", "0"]
)
seeds = st.integers(0, 2**32).map(Random)
preterminals = st.builds(lambda tag, word: Tree(tag, [word]), tags, words | st.sampled_from("()"))
trees = st.recursive(
    preterminals,
    lambda inner: st.builds(Tree, labels, st.lists(inner | words, min_size=1, max_size=4)),
    max_leaves=12,
)


def write(node: Tree | str, random: Random) -> str:
    """Write a tree as treebanks do, with function tags, traces and any white space."""
    if isinstance(node, str):
        return node
    label = node.label
    if label[0] not in "-=":
        label += random.choice(["", "", "-SBJ", "=2", "-LOC-CLR=1"])
    parts = [write(child, random) for child in node.children]
    parts = [part if part[0] == "(" and len(part) > 1 else f" {part}" for part in parts]
    if len(parts) > 1 or isinstance(node.children[0], Tree):
        for trace in ("(-NONE- *)", "(NP (-NONE- *T*-1))", "(S-3(VP(-NONE- 0) (X ( -NONE- *U*))))"):
            if random.random() < 0.2:
                parts.insert(random.randrange(len(parts) + 1), trace)
    space = "".join(random.choices(" \t", k=random.randrange(3)))
    return f"({space}{label}{space.join(parts)}{space})"


@given(trees, st.sampled_from(["{}", "( {})", "({})", "(ROOT {})", " (TOP ( {}\t))  "]), seeds)
def test_what_treebanks_write_is_read(tree, outside, random):
    assert parse_tree(outside.format(write(tree, random))) == tree


@pytest.mark.parametrize(
    ("line", "tree"),
    [
        ("(S (NP (DT the) man))", Tree("S", [Tree("NP", [Tree("DT", ["the"]), "man"])])),
        ("(ROOT (X ())", Tree("X", ["("])),
        ("(ROOT ( X ) ))", Tree("X", [")"])),
        ("(S (-LRB- () (-RRB- )))", Tree("S", [Tree("-LRB-", ["("]), Tree("-RRB-", [")"])])),
        ("(S a (| ||) b)", Tree("S", ["a", Tree("|", ["||"]), "b"])),
        ("(ROOT (NN a) (. .))", Tree("ROOT", [Tree("NN", ["a"]), Tree(".", ["."])])),
        ("((A a) (B b))", Tree("", [Tree("A", ["a"]), Tree("B", ["b"])])),
        ("(ROOT a)", Tree("ROOT", ["a"])),
        ("(S (NP-SBJ (-NONE- *PRO*)) (VP (VB go)))", Tree("S", [Tree("VP", [Tree("VB", ["go"])])])),
        ("", None),
        (" ", None),
        ("(())", None),
        ("( )", None),
        ("(S (NP (-NONE- *)))", None),
    ],
)  # fmt: skip
def test_examples(line, tree):
    assert parse_tree(line) == tree


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(S (NP a)", "brackets left open: 1"),
        ("(S (NP (DT", "brackets left open: 3"),
        ("(S a))", r"'\)' at column 6 closes no bracket"),
        ("(S (NP) (VP a))", r"'\(NP\)' at column 4 holds no word"),
        ("(S a ( ) (VP a))", r"'\( \)' at column 6 holds no word"),
        ("(NP ( the))", r"'\( the\)' at column 5 holds no word"),
        ("(NP ( the ) )", "brackets left open: 1"),
        ("(S a) (S b)", "2 trees"),
        ("(S a) b", "the word 'b' is not in a bracket"),
        ("the man", "the word 'the' is not in a bracket"),
    ],
)
def test_what_is_no_tree_is_refused(line, message):
    with pytest.raises(BadParse, match=f"{message}.*; write one whole tree") as fault:
        parse_tree(line)
    assert fault.value.reason == "not in brackets"


def test_deep_trees():
    depth = 20_000
    tree = parse_tree("(NP (X x)" * depth + ")" * depth)
    assert tree is not None and list(tree.leaves()) == ["x"] * depth
    tree = parse_tree("(ROOT " * depth + "(NP a b)" + ")" * depth)
    assert tree == Tree("NP", ["a", "b"]) and "ROOT" in ROOTS


def test_a_file_of_trees(tmp_path):
    path = tmp_path / "train.trees.en"
    path.write_bytes("(S caf\u00e9)\r\n\n(())\n(S a\u00a0b)\n".encode())
    assert list(read_trees(path)) == [Tree("S", ["café"]), None, None, Tree("S", ["a\u00a0b"])]
    path.write_text("(S a)\n\n(S a\n")
    with pytest.raises(DataError, match=r"train\.trees\.en:3: brackets left open: 1"):
        list(read_trees(path))


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ("-LRB-", "("),
        (":--RRB-", ":-)"),
        ("-LSB-", "["),
        ("-RCB-", "}"),
        ("``", '"'),
        ("''", '"'),
        ("1\\/2", "1/2"),
        ("\\*", "*"),
        ("1\u00a01/2", "11/2"),
        ("\uff21", "A"),
        ("e\u0301", "\u00e9"),
    ],
)
def test_words_are_the_same_under_their_escapes(tree, text):
    assert simplify_word(tree) == simplify_word(text) == text


def test_a_part_of_speech_is_no_binarisation():
    tree = parse_tree("(@NP (N a) (@ @) (@NP (N b) (@NP (N c) (N d))))")
    assert tree is not None
    assert remove_binarisation(tree) == parse_tree("(@NP (N a) (@ @) (N b) (N c) (N d))")


def test_a_tree_is_written_in_brackets():
    line = "(S (NP the man) (VP sleeps (PP at -LRB- home -RRB-)))"
    tree = parse_tree(line)
    assert str(tree).replace(" )", ")") == line
    assert str(Tree("X", ["(", "b"])).replace(" )", ")") == "(X -LRB- b)"
