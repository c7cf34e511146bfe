from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import DataError
from syncattn_lab.evaluation.attachment import score_attachment
from syncattn_lab.evaluation.attachment_baselines import (
    OffsetTable,
    describe_baselines,
    score_baselines,
)


def draw_text(seed, sentences=12):
    """Draw sentences of few different subwords, with the lengths and heads of their words."""
    random, text = Random(seed), []
    for _ in range(random.randint(1, sentences)):
        lengths = [random.randint(1, 3) for _ in range(random.randint(1, 6))]
        heads = [random.randint(0, len(lengths)) for _ in lengths]
        heads = [0 if head == word else head for word, head in enumerate(heads, 1)]
        text.append(([random.choice("abc") for _ in range(sum(lengths))], lengths, heads))
    return text


def loop(train, subwords, lengths, sees_word, left_only):
    """Look at the whole text again for every word, from the longest context to the shortest."""

    def context(pieces, sizes, word, count):
        end = sum(sizes[: word + 1]) if sees_word else sum(sizes[: word + 1]) - 1
        padded = ["<s>"] * 3 + list(pieces)
        return padded[end + 3 - count : end + 3]

    found = []
    for word in range(len(lengths)):
        answer = 0
        for count in (3, 2, 1, 0):
            here = context(subwords, lengths, word, count)
            offsets = Counter()
            for pieces, sizes, heads in train:
                for other, head in enumerate(heads):
                    if left_only and head > other + 1:
                        continue
                    if context(pieces, sizes, other, count) == here:
                        offsets["root" if head == 0 else head - (other + 1)] += 1
            if count and sum(offsets.values()) < 2:
                continue
            inside = {}
            for offset, times in offsets.items():
                if offset == "root" or 1 <= word + 1 + offset <= len(lengths):
                    distance = 0 if offset == "root" else offset
                    inside[(-times, abs(distance), distance)] = offset
            if inside:
                best = inside[min(inside)]
                answer = 0 if best == "root" else word + 1 + best
                break
        found.append(answer)
    return found


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_the_table_of_counts_equals_the_loop(seed, sees_word, left_only):
    train, test = draw_text(seed), draw_text(seed + 1, 3)
    table = OffsetTable(sees_word, left_only)
    for sentence in train:
        table.add(*sentence)
    for subwords, lengths, _ in test:
        expected = loop(train, subwords, lengths, sees_word, left_only)
        assert table.predict(subwords, lengths) == expected


def test_a_row_that_predicts_does_not_see_the_word():
    blind, seeing = OffsetTable(False, True), OffsetTable(True, True)
    for table in (blind, seeing):
        for last, head in (("b", 0), ("c", 1), ("b", 0), ("c", 1), ("c", 1)):
            table.add(["a", last], [1, 1], [0, head])
    assert blind.predict(["a", "b"], [1, 1]) == blind.predict(["a", "c"], [1, 1]) == [0, 1]
    assert seeing.predict(["a", "b"], [1, 1]) == [0, 0]
    assert seeing.predict(["a", "c"], [1, 1]) == [0, 1]


def test_an_empty_table_says_root():
    assert OffsetTable(True, False).predict(["a", "b"], [1, 1]) == [0, 0]


def test_words_without_heads_are_a_fault():
    with pytest.raises(DataError, match="2 words, but 1 heads"):
        OffsetTable(True, True).add(["a", "b"], [1, 1], [0])


@given(st.integers(0, 10**6), st.booleans())
def test_the_best_offset_is_the_best_of_all(seed, left_only):
    gold = [None if number % 5 == 4 else x for number, (*_, x) in enumerate(draw_text(seed))]
    found = score_baselines(gold, left_only)
    [name] = [name for name in found if name.startswith("best offset ")]
    scores = []
    for offset in range(-6, 7):
        guess = [
            [
                w + offset if offset and 1 <= w + offset <= len(x) else 0
                for w in range(1, len(x) + 1)
            ]
            for x in (heads or [] for heads in gold)
        ]
        scores.append(score_attachment(guess, gold, left_only).correct)
    assert found[name].correct == max(scores)
    assert found["random trees"].counted == found[name].counted
    assert found == score_baselines(gold, left_only), "random trees are drawn anew, with one seed"


def test_scores_in_a_line():
    table = OffsetTable(sees_word=True, left_only=False)
    gold, pieces = [[2, 0, 2], [2, 0]], [(["x", "y", "z"], [1, 1, 1]), (["x", "y"], [1, 1])]
    for heads, sentence in zip(gold * 2, pieces * 2, strict=True):
        table.add(*sentence, heads)
    found = score_baselines(gold, False, table, pieces)
    assert [*found] == ["best offset +1", "counts", "random trees"]
    assert found["best offset +1"].correct == 3, "the last word of the second sentence is a root"
    assert found["counts"].uas == 1
    assert describe_baselines(found).startswith("best offset +1 60.0, counts 100.0, random trees ")
