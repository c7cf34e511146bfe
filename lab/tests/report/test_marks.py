"""Marks in translations, compared with slow loops."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_lab.evaluation.grouped_text import match_words
from syncattn_lab.report.marks import (
    SentenceLinks,
    cut,
    find_untranslated,
    lay_out,
    mark_translations,
    pair_words,
    split_words,
)

WORDS = st.lists(st.sampled_from(["a", "b", "c", "."]), max_size=6)
OTHERS = st.lists(st.sampled_from(["a", "x", "y"]), max_size=6)


@given(WORDS, WORDS)
def test_pairs_are_the_longest_common_subsequence_and_then_what_is_left(ours, reference):
    pairs = pair_words(ours, reference)
    assert pairs is not None
    assert [ours[i] for i, _ in pairs.kept] == [reference[j] for _, j in pairs.kept]
    for side in (0, 1):
        places = [pair[side] for pair in pairs.kept]
        assert places == sorted({*places})
    longest = max(
        size
        for size in range(min(len(ours), len(reference)) + 1)
        for some in combinations(ours, size)
        if some in combinations(reference, size)
    )
    assert len(pairs.kept) == longest
    both = [*pairs.kept, *pairs.moved]
    assert all(ours[i] == reference[j] for i, j in both)
    # So many words are found, too, as BLEU counts them.
    assert len(both) == (Counter(ours) & Counter(reference)).total()
    for i, j in pairs.moved:
        assert any((i - k) * (j - n) <= 0 for k, n in pairs.kept), "it crosses another link"
    assert sorted([i for i, _ in both] + pairs.added) == [*range(len(ours))]
    assert sorted([j for _, j in both] + pairs.missing) == [*range(len(reference))]


@given(OTHERS, WORDS)
def test_gaps_have_few_other_words_in_their_place(ours, reference):
    pairs = pair_words(ours, reference)
    assert pairs is not None
    expected = []
    for word in pairs.missing:
        before = max([i for i, j in pairs.kept if j < word], default=-1)
        after = min([i for i, j in pairs.kept if j > word], default=len(ours))
        low = min([j for _, j in pairs.kept if j > word], default=len(reference))
        high = max([j for _, j in pairs.kept if j < word], default=-1)
        gone = sum(high < j < low for j in pairs.missing)
        if 3 * sum(before < i < after for i in pairs.added) < gone:
            expected.append(word)
    assert pairs.find_gaps() == expected


def test_a_gap_may_have_few_other_words():
    def find(ours: str, reference: str) -> list[int]:
        pairs = pair_words(ours.split(), reference.split())
        assert pairs is not None
        return pairs.find_gaps()

    assert find("a x z", "a b c d e z") == [1, 2, 3, 4], "one word for four"
    assert find("a x z", "a b c d z") == [], "one word for three"
    assert find("a x z", "a z b") == [2], "another place"


def test_the_first_of_the_same_words_moves_to_the_first_place():
    pairs = pair_words(["a", "a", "x", "y", "z"], ["x", "y", "z", "a", "a"])
    assert pairs is not None and pairs.moved == [(0, 3), (1, 4)]


@given(WORDS, WORDS)
def test_pieces_are_the_translation_and_what_it_lacks(ours, reference):
    texts = " ".join(ours), " ".join(reference)
    spans = [split_words(text, by_spaces=True) for text in texts]
    pairs = pair_words(ours, reference)
    assert pairs is not None
    pieces = lay_out(pairs, texts[0], spans[0], texts[1], spans[1], lambda _: "")

    def words(*kinds: str) -> list[str]:
        return "".join(text for kind, text in pieces if kind in kinds).split()

    assert words("", "+", "<", ">") == ours
    assert Counter(words("-")) == Counter(reference[j] for j in pairs.missing)
    assert words("+") == [ours[i] for i in pairs.added]
    arrows = [kind for kind, _ in pieces if kind in ("<", ">")]
    for arrow, (i, j) in zip(arrows, pairs.moved, strict=True):
        before = sum(k < i for k, _ in pairs.kept), sum(n < j for _, n in pairs.kept)
        assert before[0] != before[1] and (arrow == "<") == (before[1] < before[0])


def test_what_a_reader_sees():
    def show(text: str, reference: str) -> str:
        [marked] = mark_translations([text], reference, by_spaces=False)
        return "|".join("".join(piece) for piece in marked.pieces or ())

    assert show("Er sieht Brüder.", "Er sieht die alten Brüder.") == (
        "Er sieht|- die alten| Brüder."
    )
    assert show("Er sah, sie?", "Er sah sie.") == "Er sah|+,| sie|-.|+?"
    assert show("sieht er es", "er sieht es") == ">sieht| er es"
    assert show("es war er", "er war es") == ">es|> war| er"
    assert show("", "a b") == "-a b" and show("a", "") == "+a" and show("", "") == ""
    assert show("b", "a b") == "-a| b"
    assert show("我喜欢狗", "我喜欢猫") == "我喜欢|-猫|+狗"


def test_words_that_are_not_translated():
    linked = SentenceLinks(
        ["the", "man", "who", "sings", ",", "sleeps"],
        ["der", "Mann", ",", "der", "singt,", "schläft"],
        [(0, 0), (1, 1), (2, 3), (3, 4), (4, 2), (5, 5)],
    )
    reference = "der Mann, der singt, schläft"
    texts = ["der Mann schläft", "der Mann, der lügt, schläft", "der Mann , der schläft"]
    gone, replaced, half = mark_translations(texts, reference, False, linked)
    assert gone.untranslated == "who sings" and gone.counts["untranslated"] == 2
    assert gone.counts == {"added": 0, "missing": 4, "moved": 0, "untranslated": 2}
    assert gone.pieces == [["", "der Mann"], ["-", ", der singt,", "who sings ,"], ["", " schläft"]]
    assert replaced.untranslated == "", "another word is in their place"
    assert half.untranslated == "sings"
    other = SentenceLinks(linked.source, ["das", *linked.target[1:]], linked.links)
    [unknown] = mark_translations(texts[:1], reference, False, other)
    assert unknown.untranslated == "" and unknown.pieces is not None, "links of another text"


PLACES = st.lists(st.frozensets(st.integers(0, 4), max_size=2), min_size=4, max_size=4)
LINKS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


@given(st.sets(st.integers(0, 4)), LINKS, PLACES)
def test_all_links_of_an_untranslated_word_lead_to_gaps(gaps, links, places):
    source = ["the", ",", "old", "man"]
    expected = []
    for word in range(len(source)):
        targets = [place for i, j in links if i == word for place in places[j]]
        if targets and all(place in gaps for place in targets) and source[word] != ",":
            expected.append(word)
    assert find_untranslated(gaps, links, source, places) == expected


@pytest.mark.parametrize(
    ("text", "by_spaces", "words"),
    [
        ("It's 3.5, ok?", False, ["It", "'", "s", "3", ".", "5", ",", "ok", "?"]),
        ("It's 3.5, ok?", True, ["It's", "3.5,", "ok?"]),
        ("昨日 の本を", False, ["昨", "日", "の", "本", "を"]),
        ("नमस्ते", False, ["नमस्ते"]),
    ],
)
def test_words(text, by_spaces, words):
    assert cut(text, split_words(text, by_spaces)) == words


def test_words_of_another_split_are_found_by_their_characters():
    text = "Er kommt, ja."
    spans = split_words(text, by_spaces=False)
    words = cut(text, spans)
    found = match_words(["Er", "kommt,", "j", "a."], words)
    assert found is not None and [{*each} for each in found] == [{0}, {1, 2}, {3}, {3, 4}]
    assert match_words(["Er", "kam"], words) is None


def test_very_long_sentences_have_no_marks():
    texts = ["x " * 2000, "y " * 2000 + "z " * 600]
    long, same = mark_translations(texts, "y " * 2000, by_spaces=True)
    assert long.pieces is None and long.counts == {}
    assert same.counts["added"] == 600, "what is equal at the ends is quick"
