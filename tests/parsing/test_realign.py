from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.data.parses import check_tree
from syncattn_fairseq.parsing.formats.parsed_sentence import Analysis, Surface
from syncattn_fairseq.parsing.realign import realign, reduce_to_characters


def random_heads(size: int, seed: int) -> list[int]:
    generator = Random(seed)
    order = generator.sample(range(1, size + 1), size)
    heads = [0] * size
    for position, word in enumerate(order[1:], 1):
        heads[word - 1] = generator.choice(order[:position])
    return heads


def chain(words: list[str], surface: list[Surface] | None = None) -> Analysis:
    size = len(words)
    labels = [f"l{number}" for number in range(1, size + 1)]
    return Analysis(words, [*range(2, size + 1), 0][:size], labels, surface or [])


def tree(words: list[str], analysis: Analysis) -> tuple[list[int], list[str]] | None:
    parse = realign(words, analysis)
    return None if parse is None else (parse.heads, parse.labels)


def cut(text: str, ends: set[int]) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *sorted(ends), len(text)])]


@st.composite
def cuts(draw: st.DrawFn, size: int) -> set[int]:
    return draw(st.sets(st.integers(1, size - 1))) if size > 1 else set()


@st.composite
def analyses(draw: st.DrawFn) -> Analysis:
    text = draw(st.text("abかé", min_size=1, max_size=16))
    words = cut(text, draw(cuts(len(text))))
    heads = random_heads(len(words), draw(st.integers(0, 2**32)))
    return Analysis(words, heads, [f"l{number}" for number in range(1, len(words) + 1)])


def ends_of(words: list[str]) -> list[int]:
    return [len("".join(words[:count])) for count in range(1, len(words) + 1)]


def contracted(words: list[str], analysis: Analysis) -> tuple[list[int], list[str]]:
    """The module's rules once more, by sets of characters, in a tree that is walked from its root.

    Each block is a pair of intervals that end together; the first of its words that a walk in
    levels meets is its top.
    """
    assert analysis.heads is not None
    common = sorted(set(ends_of(words)) & set(ends_of(analysis.words)))

    def block(end: int) -> int:
        return sum(boundary < end for boundary in common)

    ours = [block(end) for end in ends_of(words)]
    theirs = [block(end) for end in ends_of(analysis.words)]
    last = [max(word for word, b in enumerate(ours, 1) if b == a) for a in range(len(common))]
    tops: dict[int, int] = {}
    level = [word for word, head in enumerate(analysis.heads, 1) if head == 0]
    while level:
        for word in level:
            tops.setdefault(theirs[word - 1], word)
        level = [word for word, head in enumerate(analysis.heads, 1) if head in level]
    heads, labels = [], []
    for word, own in enumerate(ours, 1):
        if word != last[own]:
            heads.append(word + 1)
            labels.append("goeswith")
            continue
        head = analysis.heads[tops[own] - 1]
        heads.append(0 if head == 0 else last[theirs[head - 1]])
        labels.append(analysis.labels[tops[own] - 1])
    return heads, labels


@given(analyses(), st.data())
def test_words_cut_otherwise_get_a_tree_by_the_rules(analysis, data):
    text = "".join(analysis.words)
    words = cut(text, data.draw(cuts(len(text)) | st.just({*ends_of(analysis.words)[:-1]})))
    parse = realign(words, analysis)
    assert parse is not None
    assert len(parse.heads) == len(parse.labels) == len(words)
    check_tree(parse.heads)
    assert (parse.heads, parse.labels) == contracted(words, analysis)
    if words == analysis.words:
        assert (parse.heads, parse.labels) == (analysis.heads, analysis.labels)


def analysis(words: str, heads: list[int], labels: str, *surface: Surface) -> Analysis:
    return Analysis(words.split(" "), heads, labels.split(), list(surface))


KNOW = analysis("I do n't know", [4, 4, 4, 0], "nsubj aux advmod root")
LONG = analysis("とても 長\u3000い 本 。", [2, 3, 4, 0], "a b c d")
BLOCK = analysis("x ca nnot y", [2, 0, 2, 3], "a root b c")
IM = analysis("Er ist in dem Haus", [5, 5, 5, 5, 0], "nsubj cop case det root", Surface("im", 2, 4))
SPACES = analysis("\u3000 本 \u3000 だ", [2, 3, 4, 0], "a b c d")


@pytest.mark.parametrize(
    ("analysis", "words", "heads", "labels"),
    [
        # One word of the text for several has the head of the one nearest to the root.
        (KNOW, "I don't know", [3, 3, 0], "nsubj aux root"),
        (analysis("can not", [2, 0], "aux root"), "cannot", [0], "root"),
        # Of several words of the text for one the last has its head and its dependents,
        (LONG, "とても 長 い 本 。", [3, 3, 4, 5, 0], "a goeswith b c d"),
        # and where the text's words may hold the space, too, all is as it was.
        (LONG, "とても 長\u3000い 本 。", [2, 3, 4, 0], "a b c d"),
        # Several for several are one block.
        (BLOCK, "x can not y", [3, 3, 0, 3], "a goeswith root c"),
        # Ranges are tried as they are written before their words.
        (IM, "Er ist im Haus", [4, 4, 4, 0], "nsubj cop case root"),
        (IM, "Er ist in dem Haus", [5, 5, 5, 5, 0], "nsubj cop case det root"),
        (IM, "Er ist i m Haus", [5, 5, 4, 5, 0], "nsubj cop goeswith case root"),
        (IM, "Er ist in demHaus", [4, 4, 4, 0], "nsubj cop case root"),
        # Words that nobody sees belong to a neighbour.
        (SPACES, "本 だ", [2, 0], "c d"),
        (chain(["本", "だ"]), "\u00ad 本 \u200b だ", [2, 3, 4, 0], "goeswith goeswith l1 l2"),
        (chain(["\u200b"]), "\u00ad", [0], "l1"),
    ],
)
def test_trees_over_other_words(analysis, words, heads, labels):
    assert tree(words.split(" "), analysis) == (heads, labels.split())


def test_depths_are_measured_only_where_words_compete(monkeypatch):
    """Otherwise long chains would take a time of the square of their length."""
    measured: list[int] = []

    def measure_depth(heads: list[int], word: int) -> int:
        measured.append(word)
        return len(heads) - word

    monkeypatch.setattr("syncattn_fairseq.parsing.realign._measure_depth", measure_depth)
    assert tree(["a", "bc", "d"], chain(["a", "b", "c", "d"])) == ([2, 3, 0], ["l1", "l3", "l4"])
    assert measured == [1, 2]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("dog &apos;s", "dog 's"),
        ("&quot; A &amp; B &quot;", "`` A & B ''"),
        ("&#91; 1 &#93; a &#124; b &lt; c &gt; d", "-LSB- 1 -RSB- a | b < c > d"),
        ("&quot; x", "& quot ; x"),
        ("( x )", "-LRB- x -RRB-"),
        ("( x )", "-lrb- x -rrb-"),
        ("1 / 2 * 3", "1 \\/ 2 \\* 3"),
        ("1 ½", "1 1\\/2"),
        ("“ x ” — ‘ y ’ …", "`` x '' -- ` y ' ..."),
        ('" x "', "' ' x '' "),
        ("« x »", '" x "'),
        ("well @-@ known", "well-known"),
        ("ＡＢＣ １２３ （ ｶﾞｽ ）", "ABC 123 ( ガス )"),
        ("ガ ス", "ｶ ﾞｽ"),
        ("The US", "the us"),
        ("Straße", "STRASSE"),
        ("co\u00adop a\u200bb", "coop ab"),
        ("1\u00a0000 x\u2028y", "1000 xy"),
        ("cafe\u0301", "caf\u00e9"),
        ("\ufb01n", "fin"),
        ("が\u3000で", "が\u3000 で"),
    ],
)
def test_characters_are_the_same_in_other_dress(text, parsed):
    ours = [word for word in text.split(" ") if word]
    theirs = [word for word in parsed.split(" ") if word]
    assert reduce_to_characters(ours) == reduce_to_characters(theirs)
    parse = realign(ours, chain(theirs))
    assert parse is not None
    check_tree(parse.heads)
    assert parse.heads == [*range(2, len(ours) + 1), 0]  # of a chain comes a chain
    back = realign(theirs, chain(ours))
    assert back is not None and back.heads == [*range(2, len(theirs) + 1), 0]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [("a b", "a c"), ("a b", "a"), ("a", "a b"), ("a", ""), ("", "a"), ("(", "-LRB")],
)
def test_other_characters_have_no_parse(text, parsed):
    assert realign(text.split(), chain(parsed.split())) is None
    assert realign(["Er", "ist", "in", "Haus"], IM) is None


def test_the_analysis_is_not_shared():
    analysis = chain(["a", "b"])
    parse = realign(["a", "b"], analysis)
    assert parse is not None
    parse.heads[0] = 7
    assert analysis.heads == [2, 0]
