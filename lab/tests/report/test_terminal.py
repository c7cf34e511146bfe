from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.trees.brackets import parse_tree
from syncattn_lab.report.terminal import draw_arcs, draw_links, draw_tree

WORDS = ["the", "old", "man", "saw", "昨日", "."]


def test_arcs_heads_and_errors():
    assert draw_arcs(WORDS, [3, 3, 4, 0, 4, 5], [3, 3, 4, 0, 4, 4]).splitlines() == [
        "┌──▸ the   man",
        "│ ┌▸ old   man",
        "└┬┴▸ man   saw",
        " └┬─ saw   (root)",
        " ┌┴▸ 昨日  saw",
        " └─▸ .     昨日  ✗ saw",
    ]
    # Combining characters take no column.
    assert draw_arcs(["e\u0301", "昨日"], [2, 0]).splitlines() == [
        "┌▸ e\u0301     昨日",
        "└─ 昨日  (root)",
    ]


def test_cycles_several_roots_and_what_is_not_asked():
    assert draw_arcs(list("abc"), [2, 1, 0]) == "┌┬▸ a  b\n└┴▸ b  a\n    c  (root)"
    assert draw_arcs(list("ab"), [None, 0], [2, 0], ["x", "y"]) == "  a  x: …\n  b  y: (root)"
    assert draw_arcs([], []) == ""


@given(st.integers(1, 25).flatmap(lambda n: st.lists(st.integers(0, n), min_size=n, max_size=n)))
def test_each_arc_leads_from_head_to_dependent(heads):
    heads = [0 if head == word else head for word, head in enumerate(heads, 1)]
    words = [f"w{n}" for n in range(len(heads))]
    lines = draw_arcs(words, heads).splitlines()
    drawn = [line[: line.index("w") - 2] for line in lines]
    assert len({*map(len, drawn)}) == 1
    for column in range(len(drawn[0])):
        # A line that goes down must be met by one that comes up, and the other way round.
        for above, below in zip(drawn, drawn[1:], strict=False):
            assert (above[column] in "╷│┐┤┌├┬┼") == (below[column] in "╵│┘┤└├┴┼")
    for word, head in enumerate(heads, 1):
        assert ("▸" in lines[word - 1]) == (head > 0)


def test_links_and_brackets():
    links = [(0, 0), (1, 2), (2, 2)]
    assert draw_links(links, list("xyz"), list("abc")) == "a–x  b–∅  c–y+z"
    tree = parse_tree("(S (NP (DT the) (NN man)) (VP (V saw) (PR it)))")
    assert tree is not None
    assert draw_tree(tree) == "((the man) (saw it))"
