from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.trees.binary import branch_left, branch_right
from syncattn_fairseq.trees.brackets import parse_tree
from syncattn_fairseq.trees.tree import Tree
from syncattn_lab.evaluation.bracketing import (
    Brackets,
    find_constituents,
    is_punctuation,
    score_trees,
)

# Every corner, with what is to be counted: (matched, predicted, gold) of evalb,
# then (matched, predicted, gold) of sentence F1 or None where the sentence is too short.
# Spans are written as their words' numbers from 0 and the number after the last.
CORNERS = [
    (  # gold 04 02 23, predicted 04 02 24; without "." 02 alone on both sides
        "(ROOT (S (NP-SBJ (DT the) (NN man)) (VP (VBZ sleeps)) (. .)))",
        "(X (X (X the) (X man)) (X (X sleeps) (X .)))",
        (2, 3, 3),
        (1, 1, 1),
    ),
    (  # unary chains: gold 05 03 03 35 45, predicted 05 03 03 03 35; as sets 03 35 on both sides
        "(S (NP (NP (NN dogs) (CC and) (NN cats))) (VP (VBP see) (NP (PRP us))))",
        "(X (X (X (X (X dogs) (X and) (X cats)))) (X (X see) (X us)))",
        (4, 5, 5),
        (2, 2, 2),
    ),
    # gold 01 01, predicted none: a bracket around one bare word is its part of speech
    ("(S (NP (NN yes)))", "(X yes)", (0, 0, 2), None),
    # gold 02 01, predicted 02; one word without "."
    ("(S (INTJ (UH yes)) (. .))", "(X (X yes) (X .))", (1, 1, 2), None),
    (  # gold 08 04 47 78, predicted 08 04 14 24 48 46 68, of which 68 crosses 47; without the
        # parentheses gold 04, predicted 04 14 24 46
        "(S (NP (NN a) (SYM |) (SYM ||) (NN b)) (PRN (-LRB- () (NN c) (-RRB- ))) (VP (VBZ is)))",
        "(X (X (X a) (X (X |) (X (X ||) (X b)))) (X (X (X -LRB-) (X c)) (X (X ) ) (X is))))",
        (2, 7, 4),
        (1, 4, 1),
    ),
    # gold 03, predicted 03 02
    ("(NP (DT the) (JJ old) (NN man))", "(X (X (X the) (X old)) (X man))", (1, 2, 1), (0, 1, 0)),
    # gold 02, predicted 02
    ("( (NP (DT the) (NN man)))", "(X (X The) (X <unk>))", (1, 1, 1), (0, 0, 0)),
    (  # a trace; gold 04 13 23, predicted 04 02 24, of which 02 and 24 cross 13; nothing is left
        # without the quotes, where 13 is the whole sentence
        "(S (`` ``) (NP (-NONE- *PRO*)) (VP (VB go) (ADVP (RB home))) ('' ''))",
        "(X (X (X ``) (X go)) (X (X home) (X '')))",
        (1, 3, 3),
        (0, 0, 0),
    ),
]  # fmt: skip

labels = st.sampled_from(["S", "NP", "X"])
words = st.sampled_from(["a", "b", ".", "(", "|"])
trees = st.recursive(
    st.builds(lambda word: Tree("T", [word]), words),
    lambda inner: st.builds(Tree, labels, st.lists(inner | words, min_size=1, max_size=4)),
    max_leaves=9,
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Tree, Tree]:
    one, other = draw(trees), draw(trees)
    sizes = [len(list(tree.leaves())) for tree in (one, other)]
    assume(min(sizes) >= max(sizes) - 2)
    while sizes[0] != sizes[1]:
        small = sizes.index(min(sizes))
        side = draw(st.booleans())
        tree = one if small == 0 else other
        grown = Tree("S", [Tree("T", ["a"]), tree] if side else [tree, Tree("T", ["b"])])
        one, other = (grown, other) if small == 0 else (one, grown)
        sizes[small] += 1
    return one, relabelled(other, one.leaves())


def relabelled(tree: Tree, leaves: Iterator[str]) -> Tree:
    return Tree(
        tree.label,
        [
            relabelled(child, leaves) if isinstance(child, Tree) else next(leaves)
            for child in tree.children
        ],
    )


def tree(line: str) -> Tree:
    parsed = parse_tree(line)
    assert parsed is not None
    return parsed


@pytest.mark.parametrize(("gold", "predicted", "evalb", "sentence"), CORNERS)
def test_each_corner_by_hand(gold, predicted, evalb, sentence):
    score = score_trees([tree(predicted)], [tree(gold)])
    assert score.evalb == Brackets(*evalb)
    assert score.each == (() if sentence is None else (Brackets(*sentence),))
    assert score.too_short == (sentence is None)


def test_where_nothing_is_to_be_found():
    rates = {
        Brackets(0, 0, 0): (1, 1, 1),
        Brackets(0, 2, 0): (0, 1, 0),
        Brackets(0, 0, 2): (0, 0, 0),
        Brackets(0, 2, 2): (0, 0, 0),
    }
    for brackets, expected in rates.items():
        assert (brackets.precision, brackets.recall, brackets.f1) == expected
    empty = score_trees([None], [None])
    assert empty.left_out == 1 and empty.mean("f1") == 0


def slow_spans(node: Tree | str, start: int = 0) -> tuple[list[tuple[int, int]], int]:
    if isinstance(node, str):
        return [], start + 1
    found, end = [], start
    for child in node.children:
        spans, end = slow_spans(child, end)
        found += spans
    if [type(child) for child in node.children] != [str]:
        found.append((start, end))
    return found, end


def without(node: Tree, dropped: set[int], start: int = 0) -> tuple[Tree, int]:
    """Cut words out of a tree, and the brackets that hold nothing else."""
    kept: list[Tree | str] = []
    for child in node.children:
        if isinstance(child, Tree):
            cut, start = without(child, dropped, start)
            kept += [cut] * bool(cut.children)
        else:
            kept += [child] * (start not in dropped)
            start += 1
    return Tree(node.label, kept), start


def slow_score(predicted: Tree, gold: Tree) -> tuple[Brackets, Brackets | None]:
    ours, theirs = slow_spans(predicted)[0], slow_spans(gold)[0]
    unmatched = list(theirs)
    for span in ours:
        if span in unmatched:
            unmatched.remove(span)
    evalb = Brackets(len(theirs) - len(unmatched), len(ours), len(theirs))

    leaves = list(gold.leaves())
    dropped = {index for index, word in enumerate(leaves) if word in ".("}
    size = len(leaves) - len(dropped)
    if size < 2:
        return evalb, None
    sets = [
        {(a, b) for a, b in slow_spans(without(tree, dropped)[0])[0] if b - a not in (1, size)}
        for tree in (predicted, gold)
    ]
    return evalb, Brackets(len(sets[0] & sets[1]), len(sets[0]), len(sets[1]))


@given(st.lists(pairs() | trees.map(lambda tree: (tree, tree)), min_size=1, max_size=3))
def test_agrees_with_slow_counts(corpus):
    score = score_trees([one for one, _ in corpus], [two for _, two in corpus])
    slow = [slow_score(*pair) for pair in corpus]
    for kind in ("matched", "predicted", "gold"):
        assert getattr(score.evalb, kind) == sum(getattr(row[0], kind) for row in slow)
    counted = [row[1] for row in slow if row[1] is not None]
    assert list(score.each) == counted
    assert score.too_short == len(slow) - len(counted)
    for rate in ("precision", "recall", "f1"):
        values = [getattr(brackets, rate) for brackets in counted]
        mean = sum(values) / len(values) if values else 0
        assert score.mean(rate) == pytest.approx(mean)
    for brackets in (score.evalb, *counted):
        p, r = brackets.precision, brackets.recall
        assert brackets.f1 == pytest.approx(2 * p * r / (p + r) if p + r else 0)


def test_deep_trees():
    sentence = [str(word) for word in range(500)]
    left, right = branch_left(sentence), branch_right(sentence)
    assert find_constituents(left) == [(0, end) for end in range(2, 501)]
    score = score_trees([left], [right])
    # Nothing but the whole sentence is shared.
    assert score.evalb == Brackets(1, 499, 499)
    assert score.each == (Brackets(0, 498, 498),)


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        (
            ["(X (X a) (X b))", "(X c)", "(X d)"],
            "trees.out:2: the file has 3 lines, but there are 2 gold trees",
        ),
        (
            ["(X (X a) (X b) (X c))", ""],
            "trees.out:2: the tree has 0 words, but the gold tree has 1",
        ),
    ],
)
def test_what_does_not_fit_names_file_and_line(predicted, message):
    gold = [tree("(S (X a) (X b) (X c))"), tree("(S (X d))")]
    with pytest.raises(DataError, match=message):
        score_trees([parse_tree(line) for line in predicted], gold, "trees.out")


PUNCTUATION = ". , -- ... … `` ` '' ' -LRB- -RCB- ( 。 、 「 〜 ・ „ « ?! ！"
NO_PUNCTUATION = "$ % ％ & | || + = 's n't 1 a."


@pytest.mark.parametrize("word", [*PUNCTUATION.split(), *NO_PUNCTUATION.split()])
def test_punctuation(word):
    assert is_punctuation(word) == (word in PUNCTUATION.split())
