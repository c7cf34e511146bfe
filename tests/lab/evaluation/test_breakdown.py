import pytest

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.lab.evaluation.attachment import AttachmentScore, score_attachment
from syncattn_fairseq.lab.evaluation.breakdown import (
    DISTANCES,
    attachment_by_distance,
    attachment_by_label,
)

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
