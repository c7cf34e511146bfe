from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.trees.binary import (
    branch_left,
    branch_right,
    split_at_random,
    split_by_distances,
    split_in_the_middle,
)
from syncattn_fairseq.trees.brackets import parse_tree
from syncattn_fairseq.trees.tree import Tree, linearise

sentences = st.lists(st.text("ab|", min_size=1, max_size=2) | st.sampled_from("()"), min_size=1)
BASELINES: dict[str, Callable[[Sequence[str]], Tree]] = {
    "left": branch_left,
    "right": branch_right,
    "balanced": split_in_the_middle,
    "random": lambda words: split_at_random(words, Random(1)),
}


def draw(node: Tree | str) -> str:
    if isinstance(node, str):
        return node
    assert node.label == "X"
    if isinstance(node.children[0], str):
        (word,) = map(draw, node.children)
        return word
    left, right = map(draw, node.children)
    return f"({left} {right})"


def slow(distances: list[float], words: list[str]) -> str:
    if len(words) == 1:
        return words[0]
    gaps = distances[1:]
    split = 1 + gaps.index(max(gaps))
    return f"({slow(distances[:split], words[:split])} {slow(distances[split:], words[split:])})"


@given(sentences, st.data())
def test_distances_split_top_down_at_the_largest(words, data):
    size = len(words)
    few_values = st.sampled_from([-1.0, -0.5, 0.25, 1.0])  # so that there are ties
    distances = data.draw(
        st.lists(few_values, min_size=size, max_size=size)
        | st.lists(st.floats(-1, 1), min_size=size, max_size=size)
    )
    assert draw(split_by_distances(distances, words)) == slow(distances, words)


@pytest.mark.parametrize(
    ("name", "trees"),
    [
        ("left", ["a", "(a b)", "((a b) c)", "(((a b) c) d)", "((((a b) c) d) e)"]),
        ("right", ["a", "(a b)", "(a (b c))", "(a (b (c d)))", "(a (b (c (d e))))"]),
        ("balanced", ["a", "(a b)", "(a (b c))", "((a b) (c d))", "((a b) (c (d e)))"]),
    ],
)
def test_baselines_by_hand(name, trees):
    for size, tree in enumerate(trees, 1):
        assert draw(BASELINES[name]("abcde"[:size])) == tree


@given(sentences, st.sampled_from(list(BASELINES)))
def test_every_tree_is_binary_and_read_back_from_its_brackets(words, name):
    tree = BASELINES[name](words)
    assert list(tree.leaves()) == words
    assert draw(tree).count("(") - words.count("(") == len(words) - 1
    assert parse_tree(" ".join(linearise(tree, words))) == tree


def test_every_split_of_a_random_tree_has_the_same_chance():
    generator = Random(1)
    drawn = Counter(draw(split_at_random("abcd", generator)) for _ in range(6000))
    # The first split is one of three; those off the middle leave two more ways each.
    expected = {
        "(a (b (c d)))": 1000,
        "(a ((b c) d))": 1000,
        "((a b) (c d))": 2000,
        "((a (b c)) d)": 1000,
        "(((a b) c) d)": 1000,
    }
    assert drawn == {tree: pytest.approx(count, rel=0.1) for tree, count in expected.items()}


def test_long_sentences():
    words = [str(word) for word in range(2000)]
    for distances in (range(2000), range(2000, 0, -1)):
        assert list(split_by_distances(distances, words).leaves()) == words
    assert list(branch_left(words).leaves()) == list(branch_right(words).leaves()) == words


def test_distances_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="3 distances for 2 words"):
        split_by_distances([1, 2, 3], ["a", "b"])
    with pytest.raises(DataError, match="at least one word"):
        split_by_distances([], [])
