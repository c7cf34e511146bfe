from contextlib import nullcontext

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.base.errors import BadParse
from syncattn_fairseq.data.controls import (
    CONTROLS,
    NO_TREES,
    count_words,
    draw_heads,
    draw_other,
    mirror_tree,
    shuffle_heads,
    take_tree,
)
from syncattn_fairseq.data.parses import check_tree
from syncattn_fairseq.data.subwords import CONTINUATION, NO_HEAD
from tests.data.test_subwords import marks_of

lengths = st.lists(st.integers(1, 3), min_size=1, max_size=9)
seeds = st.integers(0, 2**31)


def marks(lengths: list[int], heads: list[int]) -> torch.Tensor:
    return torch.tensor(marks_of(heads, lengths), dtype=torch.int16)


def words(found: torch.Tensor) -> list[int]:
    heads: list[int] = found[found != CONTINUATION].tolist()
    return heads


@given(lengths, seeds)
def test_a_random_tree_is_a_tree_over_the_same_words(sizes, seed):
    plain = marks(sizes, list(range(len(sizes))))  # each word hangs from the one before
    drawn = draw_heads(plain, np.random.default_rng(seed))
    check_tree(words(drawn))
    assert drawn.eq(CONTINUATION).equal(plain.eq(CONTINUATION))
    assert drawn.dtype == plain.dtype


@pytest.mark.parametrize("control", CONTROLS)
def test_controls_give_trees_unless_it_is_said(control):
    plain = marks([1] * 9, list(range(9)))
    drawn = [words(CONTROLS[control](plain, np.random.default_rng(seed))) for seed in range(9)]
    with pytest.raises(BadParse) if control in NO_TREES else nullcontext():
        for heads in drawn:
            check_tree(heads)


@given(lengths, seeds)
def test_shuffling_keeps_the_heads_and_moves_them(sizes, seed):
    plain = marks(sizes, list(range(len(sizes))))
    shuffled = shuffle_heads(plain, np.random.default_rng(seed))
    assert sorted(words(shuffled)) == words(plain)
    assert shuffled.eq(CONTINUATION).equal(plain.eq(CONTINUATION))


def test_they_are_drawn_anew_with_another_seed():
    plain = marks([1] * 30, list(range(30)))
    for control in (shuffle_heads, draw_heads):
        draws = {tuple(control(plain, np.random.default_rng(s)).tolist()) for s in (1, 1, 2)}
        assert len(draws) == 2


def test_random_trees_are_of_every_shape():
    plain = marks([1] * 3, [0, 1, 2])
    drawn = {tuple(words(draw_heads(plain, np.random.default_rng(s)))) for s in range(200)}
    stars = {(0, 1, 1), (2, 0, 2), (3, 3, 0)}
    chains = {(0, 1, 2), (0, 3, 1), (2, 0, 1), (3, 0, 2), (2, 3, 0), (3, 1, 0)}
    assert drawn == stars | chains


def test_a_sentence_without_parse_stays_without():
    for found in (torch.tensor([NO_HEAD, CONTINUATION, NO_HEAD]), torch.tensor([], dtype=int)):
        for control in CONTROLS.values():
            assert control(found, np.random.default_rng(1)).equal(found)


@given(lengths, seeds)
def test_a_mirrored_tree_keeps_the_lengths_of_all_arcs(sizes, seed):
    plain = draw_heads(marks(sizes, [0] * len(sizes)), np.random.default_rng(seed))
    mirrored = mirror_tree(plain, np.random.default_rng(seed))
    check_tree(words(mirrored))
    assert mirrored.eq(CONTINUATION).equal(plain.eq(CONTINUATION))
    assert mirrored.dtype == plain.dtype
    arcs = [head - word for word, head in enumerate(words(plain), 1) if head]
    assert [word - head for word, head in enumerate(words(mirrored), 1) if head] == arcs[::-1]


@given(st.integers(0, 9), st.sets(st.integers(0, 9)), seeds)
def test_another_sentence_is_drawn_from_all_others(index, alike, seed):
    others = sorted(alike - {index})
    drawn = draw_other(index, sorted(alike), np.random.default_rng(seed))
    expected = others and others[np.random.default_rng(seed).integers(len(others))]
    assert drawn == (None if expected == [] else expected)


def test_a_tree_of_another_sentence_keeps_these_words():
    plain, other = marks([2, 1, 1], [2, 0, 1]), marks([1, 3, 1], [0, 1, 2])
    taken = take_tree(plain, other)
    assert words(taken) == [0, 1, 2]
    assert taken.eq(CONTINUATION).equal(plain.eq(CONTINUATION))
    assert take_tree(plain, None).equal(mirror_tree(plain, np.random.default_rng(1)))
    assert count_words(plain) == 3 and count_words(marks([1], [NO_HEAD])) == 0
