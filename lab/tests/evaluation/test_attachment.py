import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.data.subwords import subword_parents
from syncattn_fairseq.data.words import find_word_heads
from syncattn_lab.evaluation.attachment import DISTANCES, AttachmentScore, score_attachment


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


@pytest.mark.parametrize(
    ("predicted", "gold", "labels", "message"),
    [
        ([[0]], [[0], [0]], None, "heads of 1 sentences, but gold heads of 2"),
        ([[0], [0, 1]], [[0], [0]], None, "sentence 2: 2 heads, 1 gold heads"),
        ([[0]], [[0]], [["root", "det"]], "sentence 1: 1 heads, 1 gold heads, 2 labels"),
        ([[0]], [[0]], [None], "sentence 1: 1 heads, 1 gold heads, 0 labels"),
        ([[0]], [[0]], [], "labels of 0 sentences, but gold heads of 1"),
    ],
)
def test_mismatches(predicted, gold, labels, message):
    with pytest.raises(DataError, match=message):
        score_attachment(predicted, gold, labels=labels)


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
    found = score_attachment(GUESS, GOLD).parts["distance"]
    assert list(found) == list(DISTANCES)
    assert found["root"] == AttachmentScore(2, 2, 2)
    assert found["1"] == AttachmentScore(2, 3, 3)
    assert found["3-4"] == AttachmentScore(2, 2, 2)
    assert found["10+"] == AttachmentScore(2, 3, 3)


@pytest.mark.parametrize("left_only", [False, True])
def test_parts_make_up_the_whole(left_only):
    labels = [["a", "b", "a"], None, ["c"] * 13]
    whole = score_attachment(GUESS, GOLD, left_only, labels)
    assert whole == score_attachment(GUESS, GOLD, left_only)
    for parts in whole.parts.values():
        for number in ("correct", "counted", "total"):
            every = (getattr(part, number) for part in parts.values())
            assert sum(every) == getattr(whole, number)


def test_by_label_from_frequent_to_rare():
    found = score_attachment([[0, 1, 1]], [[0, 1, 2]], labels=[["root", "det", "det"]])
    expected = {"det": AttachmentScore(1, 2, 2), "root": AttachmentScore(1, 1, 1)}
    assert [*found.parts["label"].items()] == [*expected.items()]
