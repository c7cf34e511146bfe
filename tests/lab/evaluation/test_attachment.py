import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.subwords import subword_parents
from syncattn_fairseq.data.words import find_word_heads
from syncattn_fairseq.lab.evaluation.attachment import (
    DISTANCES,
    AttachmentScore,
    attachment_by_distance,
    attachment_by_label,
    score_attachment,
)


def heads(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, size), min_size=size, max_size=size)


@given(
    st.lists(st.integers(1, 5).flatmap(lambda n: st.tuples(heads(n), st.none() | heads(n)))),
    st.booleans(),
)
def test_agrees_with_a_loop(corpus, left):
    """A head that is the root is to the left of every word."""
    correct = counted = 0
    for guess, truth in corpus:
        for word, head in enumerate(truth or [], 1):
            if left and head > word:
                continue
            counted += 1
            if guess[word - 1] == head:
                correct += 1
    score = score_attachment([g for g, _ in corpus], [t for _, t in corpus], left_only=left)
    assert (score.correct, score.counted) == (correct, counted)
    assert score.total == sum(len(truth) for _, truth in corpus if truth)
    assert score.uas == (correct / counted if counted else 0)
    assert score.coverage == (counted / score.total if score.total else 0)


def test_mismatches():
    with pytest.raises(DataError, match="heads of 1 sentences, gold heads of 2"):
        score_attachment([[0]], [[0], [0]])
    with pytest.raises(DataError, match="sentence 2: 2 heads, 1 gold heads"):
        score_attachment([[0], [0, 1]], [[0], [0]])


def test_word_heads_by_hand():
    # Words: 0 1 | 2 | 3 4. The first points to the third, the second to itself, the third to it.
    assert find_word_heads([1, 4, 2, 0, 2], [2, 1, 2]) == [3, 0, 2]


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(heads(n), st.lists(st.integers(1, 3), min_size=n, max_size=n))
    )
)
def test_word_heads_undo_the_chain(tree):
    words, lengths = tree
    parents = [int(p) for p in subword_parents(words, lengths, "chain")]
    expected = [0 if head == word else head for word, head in enumerate(words, 1)]
    assert find_word_heads(parents, lengths) == expected


@pytest.mark.parametrize("parents", [[0, 0], [0, 0, 3], [0, 0, -1]])
def test_word_heads_that_do_not_fit(parents):
    with pytest.raises(DataError, match="3 subwords"):
        find_word_heads(parents, [2, 1])


GOLD = [[2, 0, 2], None, [12, *[1] * 11, 0]]
GUESS = [[2, 0, 1], [1], [12, *[1] * 10, 2, 0]]


def test_by_distance():
    found = attachment_by_distance(GUESS, GOLD)
    assert list(found) == list(DISTANCES)
    assert found["root"] == AttachmentScore(2, 2, 2)
    assert found["1"] == AttachmentScore(2, 3, 3)
    assert found["3-4"] == AttachmentScore(2, 2, 2)
    assert found["10+"] == AttachmentScore(2, 3, 3)


def test_parts_make_up_the_whole():
    for left_only in (False, True):
        whole = score_attachment(GUESS, GOLD, left_only)
        labels = [["a", "b", "a"], None, ["c"] * 13]
        for parts in (
            attachment_by_distance(GUESS, GOLD, left_only),
            attachment_by_label(GUESS, GOLD, labels, left_only),
        ):
            assert sum(part.correct for part in parts.values()) == whole.correct
            assert sum(part.counted for part in parts.values()) == whole.counted
            assert sum(part.total for part in parts.values()) == whole.total


def test_by_label_from_frequent_to_rare():
    found = attachment_by_label([[0, 1, 1]], [[0, 1, 2]], [["root", "det", "det"]])
    assert found == {"det": AttachmentScore(1, 2, 2), "root": AttachmentScore(1, 1, 1)}
    assert list(found) == ["det", "root"]


def test_labels_must_fit():
    with pytest.raises(DataError, match="sentence 1: 1 heads, 1 gold heads, 2 labels"):
        attachment_by_label([[0]], [[0]], [["root", "det"]])
    with pytest.raises(DataError, match="labels of 0 sentences, gold heads of 1"):
        attachment_by_label([[0]], [[0]], [])
