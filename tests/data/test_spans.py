"""Words as spans of characters: which subwords are theirs, and that units are trees."""

import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse
from syncattn_fairseq.data.parses import check_tree
from syncattn_fairseq.data.spans import (
    align_places,
    check_spans,
    find_owners,
    find_units,
    measure_depths,
    move_spans,
    split_span,
)


@st.composite
def cuts(draw, least):
    """Spans in order; some are empty, some characters between them are in none."""
    sizes = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(least, 5)), max_size=12))
    spans, at = [], 0
    for gap, size in sizes:
        spans.append((at + gap, at + gap + size))
        at += gap + size
    return spans


@st.composite
def sentences(draw):
    """Pieces, words of which some share a span, and a tree of the words."""
    words = draw(cuts(1).filter(len))
    words = [span for span in words for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3])))]
    order = draw(st.permutations(range(len(words))))
    heads = [0] * len(words)
    for place, word in enumerate(order[1:], 1):
        heads[word] = order[draw(st.integers(0, place - 1))] + 1
    return draw(cuts(0)), words, heads


def share(one, other):
    return len({*range(*one)} & {*range(*other)})


def find_owners_slowly(pieces, words):
    owners = []
    for piece in pieces:
        shared = [share(piece, word) for word in words]
        owners.append(shared.index(max(shared)) if any(shared) else None)
    known = [owner for owner in owners if owner is not None] or [0]
    for place, owner in enumerate(owners):
        if owner is None:
            later = [x for x in owners[place:] if x is not None]
            owners[place] = (later or known[-1:])[0]
    return owners


def find_units_slowly(pieces, words):
    """For each word, the number of its unit, which are numbered in the order of their words."""
    owners = find_owners_slowly(pieces, words)
    chosen = []
    for word, span in enumerate(words):
        held = Counter()
        for piece, owner in zip(pieces, owners, strict=True):
            held[owner] += share(piece, span)
        best = max(held.values(), default=0)
        if word in owners:
            chosen.append(word)
        elif best:
            chosen.append(min(owner for owner in held if held[owner] == best))
        else:
            chosen.append(min([x for x in owners if x > word], default=max(owners, default=-1)))
    order = sorted({*owners})
    return [order.index(word) if word in order else -1 for word in chosen]


@given(sentences())
def test_pieces_belong_to_words_and_words_to_units(sentence):
    pieces, words, _ = sentence
    assert find_owners(pieces, words) == find_owners_slowly(pieces, words)
    units = find_units(pieces, words)
    assert units.of_words == find_units_slowly(pieces, words)
    owners = find_owners(pieces, words)
    assert units.starts == [n == 0 or owners[n] != owners[n - 1] for n in range(len(pieces))]
    assert sum(units.starts) == len({*owners})


@given(sentences())
def test_units_are_a_tree_whose_heads_are_those_of_the_shallowest_words(sentence):
    pieces, words, heads = sentence
    units = find_units(pieces, words)
    if not pieces:
        return
    above = units.map_heads(heads)
    check_tree(above)
    assert len(above) == sum(units.starts)
    depths = measure_depths(heads)
    labels = units.map_labels([f"label {word}" for word in range(len(words))], heads)
    for unit, top in enumerate(units.find_tops(heads)):
        members = [word for word, number in enumerate(units.of_words) if number == unit]
        assert depths[top] == min(depths[word] for word in members)
        assert top == min(word for word in members if depths[word] == depths[top])
        assert above[unit] == (heads[top] and 1 + units.of_words[heads[top] - 1])
        assert labels[unit] == f"label {top}"


def test_the_first_word_has_not_always_the_head():
    """`im Haus`, where `im` stands for `in dem`, and all is one piece."""
    units = find_units([(0, 7)], [(0, 2), (0, 2), (3, 7)])
    assert units.starts == [True]
    assert (units.of_words, units.map_heads([3, 3, 0])) == ([0, 0, 0], [0])
    assert units.map_labels(["case", "det", "root"], [3, 3, 0]) == ["root"]


def test_without_words_all_pieces_are_one_unit():
    assert find_owners([(0, 1), (1, 1)], []) == [0, 0]
    assert find_units([(0, 1), (1, 1)], []).starts == [True, False]
    assert find_units([], []).starts == []


def test_depths():
    assert measure_depths([2, 0, 2, 3]) == [1, 0, 1, 2]
    assert measure_depths([2, 3, 4, 5, 0]) == [4, 3, 2, 1, 0]
    assert measure_depths([]) == []
    with pytest.raises(BadParse, match="never ends"):
        measure_depths([2, 1])


@pytest.mark.parametrize(
    ("surface", "forms", "spans"),
    [
        ("cannot", ["can", "not"], [(3, 6), (6, 9)]),
        ("Cannot", ["can", "not"], [(3, 6), (6, 9)]),
        ("zum", ["zu", "dem"], [(3, 6)] * 2),
        ("ab", ["ab", ""], [(3, 5)] * 2),
        ("İa", ["i\u0307", "a"], [(3, 5)] * 2),
    ],
)
def test_a_token_is_split_where_its_words_are_its_parts(surface, forms, spans):
    assert split_span((3, 3 + len(surface)), surface, forms) == spans


def test_spans_hold_in_a_text_with_other_spaces():
    assert align_places("ab c d", "a bcd ") == ([0, 1, 2, 2, 3, 3, 4], [0, 1, 1, 2, 3, 4, 4])
    assert move_spans([(1, 3), (4, 9)], " ab  c  d ", "ab c d") == [(0, 2), (3, 6)]
    assert move_spans([(0, 1)], " a", "a") == [(0, 0)]


@pytest.mark.parametrize(
    ("sentence", "text", "words"),
    [
        ("A café´s…", "A café ́s...", ["A", "café", "́s", "..."]),
        ("½ ﬁt", "1⁄2 fit", ["1⁄2", "fit"]),
        ("x\u200by \u200b z", "x y z", ["x y", "", "z"]),
        ("e\u0301t o\u0302", "ét ô", ["ét", "ô"]),
        ("ét ô", "e\u0301t o\u0302", ["e\u0301t", "o\u0302"]),
        ("STRAẞE ２", "strasse 2", ["strasse", "2"]),
    ],
)
def test_spans_hold_in_what_a_model_makes_of_the_text(sentence, text, words):
    spans = [match.span() for match in re.finditer(r"\S?´s|…|[^\s…´]+", sentence)]
    moved = move_spans(spans, sentence, text)
    assert [text[begin:end].strip() for begin, end in moved] == words


def test_part_of_what_became_one_character_is_all_of_it():
    assert move_spans([(0, 1), (1, 3)], "1⁄2 x", "½ x") == [(0, 1), (0, 1)]
    assert move_spans([(0, 1)], "…", "...") == [(0, 3)]


@given(st.text(st.sampled_from("aÀ e\u0301ǆ½…ﬁ\u200b\u3000ｶﾞ가ᄀ´ẞ\u0345"), max_size=12))
def test_letters_are_those_of_a_normalised_text(sentence):
    text = unicodedata.normalize("NFKC", sentence)
    before, places = align_places(text, sentence)
    assert before[-1] == places[-1]
    for counts, whole in ((before, text), (places, sentence)):
        assert len(counts) == len(whole) + 1 and counts == sorted(counts) and counts[0] == 0


def test_letters_of_another_sentence_are_refused():
    with pytest.raises(BadParse, match="the subwords belong to 'a b', not to the sentence 'a c'"):
        align_places("a b", "a c")


@pytest.mark.parametrize(
    "spans", [[(0, 4)], [(1, 1)], [(2, 1)], [(1, 3), (0, 1)], [(0, 2), (1, 3)], [(0, 2), (0, 1)]]
)
def test_spans_that_are_no_words_are_refused(spans):
    with pytest.raises(
        BadParse, match=r"span \d-\d cannot follow \d-\d in a sentence of 3 characters"
    ):
        check_spans(spans, 3)


def test_words_may_share_a_span_and_leave_characters_out():
    check_spans([(0, 1), (0, 1), (2, 3)], 3)
