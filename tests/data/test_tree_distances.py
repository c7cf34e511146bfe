import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from syncattn_fairseq.data.subwords import CONTINUATION, NO_HEAD, NO_TOKEN
from syncattn_fairseq.data.tree_distances import measure_tree_distances
from tests.functional import reference
from tests.functional.test_sdatt import random_parents


@given(st.integers(1, 7), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2**31))
def test_subwords_are_as_far_apart_as_their_words(words, left, right, seed):
    torch.manual_seed(seed)
    parents = random_parents(words).tolist()
    marks, word_of = [], []
    for word, parent in enumerate(parents):
        subwords = int(torch.randint(1, 4, ()))
        marks += [0 if parent == word else parent + 1] + [CONTINUATION] * (subwords - 1)
        word_of += [word] * subwords
    # The end of the sentence is one more word, which hangs from the root.
    root = next(word for word, parent in enumerate(parents) if word == parent)
    expected = reference.tree_distances([*parents, root])
    word_of.append(words)

    row = torch.tensor([NO_TOKEN] * left + marks + [NO_TOKEN] * (1 + right))
    ends = torch.zeros(len(row), dtype=torch.bool)
    ends[left + len(marks)] = True
    other = torch.full_like(row, NO_TOKEN)  # another sentence of the batch
    found = measure_tree_distances(torch.stack([other, row]), torch.stack([ends & False, ends]))
    assert found.dtype == torch.int16
    inside = slice(left, left + len(word_of))
    assert found[1, inside, inside].tolist() == [[expected[a][b] for b in word_of] for a in word_of]


def test_without_a_parse_nothing_is_near():
    marks = torch.tensor([[NO_HEAD, CONTINUATION, NO_HEAD, NO_TOKEN], [2, 0, 2, NO_TOKEN]])
    ends = marks == NO_TOKEN
    found = measure_tree_distances(marks, ends)
    assert (found[0] == 0).all()
    assert found[1].tolist() == [[0, 1, 2, 2], [1, 0, 1, 1], [2, 1, 0, 2], [2, 1, 2, 0]]


@pytest.mark.parametrize("pads", [0, 1, 3])
def test_a_word_whose_head_was_cut_off_is_a_tree_of_its_own(pads):
    rows = torch.tensor([[9, 0, 2, NO_TOKEN], [9, 1, 9, NO_TOKEN]])
    marks = F.pad(rows, (pads, 0), value=NO_TOKEN)
    ends = torch.arange(marks.size(1)).expand_as(marks) == pads + 3
    found = measure_tree_distances(marks, ends)[:, pads:, pads:]
    assert found[0, 1].tolist() == [2, 0, 1, 1]  # the end hangs from the root
    assert found[1, 0].tolist() == [0, 1, 2, 1]  # or else from the first word without a head
