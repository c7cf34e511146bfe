import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.data.subwords import (
    CONTINUATION,
    NO_HEAD,
    NO_TOKEN,
    RULES,
    find_parents,
    subword_parents,
)


def slow_parents(
    heads: list[int] | None, lengths: list[int], present: int, rule: str
) -> list[float | None]:
    """Parents of the first `present` subwords of a sentence, None where there is none."""
    words, position = [], 0
    for length in lengths:
        words.append([p for p in range(position, position + length) if p < present])
        position += length
    words = [word for word in words if word]
    parents: list[float | None] = []
    for number, word in enumerate(words):
        for place, subword in enumerate(word):
            if heads is None:
                parents.append(None)
                continue
            if rule == "chain" and place < len(word) - 1:
                parents.append(word[place + 1])
                continue
            head = heads[number]
            if head == 0 and rule == "chain":
                parents.append(subword)
            elif head > len(words):
                parents.append(None)
            else:
                target = word if head == 0 else words[head - 1]
                middle = sum(target) / len(target)
                parents.append(middle if rule == "middle" else target[0])
    return parents


@st.composite
def sentences(draw: st.DrawFn) -> tuple[list[int] | None, list[int], int]:
    lengths = draw(st.lists(st.integers(1, 4), max_size=7))
    heads = [draw(st.integers(0, len(lengths))) for _ in lengths]
    present = draw(st.integers(0, sum(lengths)))
    return draw(st.sampled_from([heads, heads, heads, None])), lengths, present


def marks_of(heads: list[int] | None, lengths: list[int]) -> list[int]:
    marks = []
    for word, length in enumerate(lengths):
        marks += [NO_HEAD if heads is None else heads[word]] + [CONTINUATION] * (length - 1)
    return marks


@given(
    st.lists(sentences(), min_size=1, max_size=5), st.sampled_from(RULES), st.booleans(), st.data()
)
def test_batch_equals_slow_loop(batch, rule, left, data):
    width = max(present for _, _, present in batch) + 1 + data.draw(st.integers(0, 2))
    marks = torch.full((len(batch), width), NO_TOKEN)
    expected = torch.full((len(batch), width), math.nan)
    for row, (heads, lengths, present) in enumerate(batch):
        offset = width - present - 1 if left else 0  # one column for the end of sentence
        marks[row, offset : offset + present] = torch.tensor(marks_of(heads, lengths)[:present])
        for column, parent in enumerate(slow_parents(heads, lengths, present, rule)):
            if parent is not None:
                expected[row, offset + column] = offset + parent
    dtype = data.draw(st.sampled_from([torch.int16, torch.int32, torch.int64]))
    parents = find_parents(marks.to(dtype), rule)
    if rule == "middle":
        assert parents.dtype == torch.float32
        torch.testing.assert_close(parents, expected, rtol=0, atol=0, equal_nan=True)
    else:
        assert parents.dtype == torch.int64
        assert torch.equal(parents, expected.nan_to_num(-1).long())


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # "the | ob-ser-ver | sl-eeps": the -> observer -> sleeps (root)
        ("chain", [1, 2, 3, 4, 5, 5]),
        ("first", [1, 4, 4, 4, 4, 4]),
        ("middle", [2.0, 4.5, 4.5, 4.5, 4.5, 4.5]),
    ],
)
def test_rules_by_hand(rule, expected):
    assert subword_parents([2, 3, 0], [1, 3, 2], rule) == expected


@pytest.mark.parametrize("rule", RULES)
def test_a_word_without_head_in_a_parsed_row_can_still_be_a_parent(rule):
    parents = find_parents(torch.tensor([[NO_HEAD, CONTINUATION, 1]]), rule)
    assert parents.nan_to_num(-1).tolist() == [[-1, -1, 0.5 if rule == "middle" else 0]]


@pytest.mark.parametrize("rule", RULES)
def test_a_head_beyond_a_row_of_words_alone_is_no_parent(rule):
    for marks, parents in (([0, 9], [0, -1]), ([9], [-1])):
        assert find_parents(torch.tensor([marks]), rule).nan_to_num(-1).tolist() == [parents]


@pytest.mark.parametrize("shape", [(2, 0), (0, 3)])
def test_empty_batches(shape):
    for rule in RULES:
        assert find_parents(torch.zeros(shape, dtype=torch.long), rule).shape == shape


@pytest.mark.parametrize(
    ("heads", "lengths", "rule", "message"),
    [
        ([0, 3], [1, 1], "chain", "head 3 of word 2 is out of range 0..2"),
        ([0, -1], [1, 1], "chain", "head -1"),
        ([0], [0], "first", "word 1 has 0 subwords"),
        ([0], [1, 1], "first", "1 heads but 2 words"),
        ([0], [1], "last", "unknown rule 'last'"),
    ],
)
def test_bad_arguments(heads, lengths, rule, message):
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        subword_parents(heads, lengths, rule)
