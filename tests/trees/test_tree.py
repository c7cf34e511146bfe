from hypothesis import given

from syncattn_fairseq.trees.brackets import parse_tree
from syncattn_fairseq.trees.tree import Tree, bracket_dependencies, linearise
from tests.trees.test_brackets import trees


def slow(node: Tree | str) -> str:
    if isinstance(node, str):
        return "XX"
    if [type(child) for child in node.children] == [str]:
        return f"({node.label})"
    return f"({node.label} {' '.join(map(slow, node.children))} )"


@given(trees)
def test_without_words(tree):
    assert linearise(tree) == slow(tree).split()


@given(trees)
def test_with_words_the_tree_is_read_back(tree):
    assert parse_tree(f"(ROOT (ROOT {' '.join(linearise(tree, tree.leaves()))} x))") == Tree(
        "ROOT", [tree, "x"]
    )


def test_dependencies_in_brackets():
    heads, labels = [2, 3, 0, 3], ["det", "nsubj", "root", "punct"]
    tree = bracket_dependencies(heads, labels, ["the", "man", "sleeps", "."])
    assert " ".join(linearise(tree)) == "(root (nsubj (det) XX ) XX (punct) )"
    assert " ".join(linearise(tree, tree.leaves())) == (
        "(root (nsubj (det the ) man ) sleeps (punct . ) )"
    )
    assert (
        " ".join(linearise(bracket_dependencies(heads, [""] * 4, "tms."))) == "( ( () XX ) XX () )"
    )


def test_a_non_projective_tree_changes_the_order():
    tree = bracket_dependencies([3, 0, 2, 1], list("abcd"), list("1234"))
    assert " ".join(linearise(tree, tree.leaves())) == "(b 2 (c (a 1 (d 4 ) ) 3 ) )"


def test_deep_trees():
    depth = 20_000
    tree = bracket_dependencies([*range(depth)], [""] * depth, ["x"] * depth)
    assert linearise(tree) == ["(", "XX"] * (depth - 1) + ["()"] + [")"] * (depth - 1)
