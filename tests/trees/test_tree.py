from hypothesis import example, given
from hypothesis import strategies as st

from syncattn_fairseq.trees.brackets import parse_tree
from syncattn_fairseq.trees.tree import Tree, bracket_dependencies, linearise

words = st.text("ab▁@|", min_size=1, max_size=3)
trees = st.recursive(
    st.builds(lambda tag, word: Tree(tag, [word]), st.sampled_from(["DT", "NN"]), words),
    lambda inner: st.builds(
        Tree, st.sampled_from(["S", "NP"]), st.lists(inner | words, min_size=1, max_size=4)
    ),
    max_leaves=12,
)


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


def test_what_is_written_for_a_word():
    tree = parse_tree("(S (NP (DT the) (NN man)) (VP (VBZ sleeps)) (. .))")
    assert tree is not None
    assert " ".join(linearise(tree)) == "(S (NP (DT) (NN) ) (VP (VBZ) ) (.) )"
    assert " ".join(linearise(tree, ["▁the", "▁m an", "▁sleep s", "▁."])) == (
        "(S (NP (DT ▁the ) (NN ▁m an ) ) (VP (VBZ ▁sleep s ) ) (. ▁. ) )"
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


@st.composite
def dependencies(draw: st.DrawFn) -> list[int]:
    order = draw(st.permutations(range(1, draw(st.integers(1, 9)) + 1)))
    heads = {order[0]: 0}
    for place, word in enumerate(order[1:], 1):
        heads[word] = draw(st.sampled_from(order[:place]))
    return [heads[word] for word in sorted(heads)]


def read_back(tree: Tree) -> dict[int, tuple[str, int]]:
    """Return label and head of each word; each bracket holds its head and other brackets."""

    def head(node: Tree) -> int:
        (word,) = (int(child) for child in node.children if isinstance(child, str))
        return word

    found = {head(tree): (tree.label, 0)}
    for child in tree.children:
        if isinstance(child, Tree):
            found |= read_back(child) | {head(child): (child.label, head(tree))}
    return found


@given(dependencies(), st.data())
@example([3, 0, 2, 1], None)
def test_heads_and_labels_are_read_back(heads, data):
    labels = [data.draw(st.sampled_from("abc")) if data else "x" for _ in heads]
    tree = bracket_dependencies(heads, labels, [str(word) for word in range(1, len(heads) + 1)])
    again = parse_tree(" ".join(linearise(tree, tree.leaves())))
    assert again is not None
    found = read_back(again)
    assert [found[word] for word in sorted(found)] == list(zip(labels, heads, strict=True))
    for node in _brackets(again):  # dependents stand in order on either side of their head
        order = [int(next(iter(_own(child)))) for child in node.children]
        assert order == sorted(order)


def _brackets(tree: Tree) -> list[Tree]:
    return [tree] + [
        b for child in tree.children if isinstance(child, Tree) for b in _brackets(child)
    ]


def _own(node: Tree | str) -> list[str]:
    if isinstance(node, str):
        return [node]
    return [child for child in node.children if isinstance(child, str)]


def test_deep_trees():
    depth = 20_000
    tree = bracket_dependencies([*range(depth)], [""] * depth, ["x"] * depth)
    assert linearise(tree) == ["(", "XX"] * (depth - 1) + ["()"] + [")"] * (depth - 1)
