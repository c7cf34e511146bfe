import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.inference import Alignment, Distances, Parse, Sentence, Translation
from syncattn_fairseq.inference.best_tree import best_tree
from tests.data.test_parses import slow_fault

SENTENCE = Sentence(["▁der", "▁Hun", "d", "▁schläft"], "sentencepiece")


def test_a_translation_is_its_text():
    translation = Translation(SENTENCE, -0.5)
    assert translation == "der Hund schläft" and translation.score == -0.5
    assert translation.sentence.lengths == [1, 2, 1]


def test_heads_are_those_of_final_subwords_and_the_tree_has_one_root():
    attention = np.array(
        [
            [0.1, 0.6, 0.2, 0.1],
            [0.0, 0.1, 0.9, 0.0],
            [0.4, 0.1, 0.1, 0.4],  # der and schläft are as near; the first comes first
            [0.0, 0.1, 0.1, 0.8],
        ]
    )
    parse = Parse(SENTENCE, attention)
    assert parse.piece_heads == [1, 2, 0, 3]
    assert parse.heads == [2, 1, 0]  # a cycle
    assert parse.tree == [2, 3, 0]
    assert parse.conllu() == (
        "# text = der Hund schläft\n"
        "1\tder\t_\t_\t_\t_\t2\tdep\t_\t_\n"
        "2\tHund\t_\t_\t_\t_\t3\tdep\t_\t_\n"
        "3\tschläft\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    )


def test_links_of_subwords_become_links_of_words():
    source = Sentence(["▁the", "▁dog", "▁sleeps"], "sentencepiece")
    attention = np.array([[0.9, 0.1, 0], [0, 0.6, 0.4], [0, 0.9, 0.1], [0, 0.2, 0.7]])
    alignment = Alignment(source, SENTENCE, attention)
    assert alignment.piece_links == [(0, 0), (1, 1), (1, 2), (2, 3)]
    assert alignment.links == [(0, 0), (1, 1), (2, 2)] and str(alignment) == "0-0 1-1 2-2"


def test_distances_are_of_the_highest_layer():
    distances = Distances(SENTENCE, {1: [0.0, 0.1, 0.9, 0.2], 2: [0.0, 0.4, 0.9, 0.3]})
    assert distances.of_words() == distances.of_words(2) == [0.0, 0.4, 0.3]
    assert distances.of_words(1) == [0.0, 0.1, 0.2]
    assert str(distances.tree()).replace(" )", ")") == "(X (X der) (X (X Hund) (X schläft)))"


def test_nothing_has_no_heads_and_no_links():
    empty = Sentence([], "none")
    assert Parse(empty, np.zeros((0, 0))).tree == Parse(empty, np.zeros((0, 0))).heads == []
    assert Alignment(empty, SENTENCE, np.zeros((4, 0))).links == []
    assert Alignment(SENTENCE, empty, np.zeros((0, 4))).links == []


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(
            st.lists(st.floats(0, 1), min_size=n, max_size=n), min_size=n, max_size=n
        )
    )
)
def test_the_best_tree_is_the_best_of_all(rows):
    scores = np.array(rows)
    size = len(scores)

    def weigh(heads: tuple[int, ...]) -> float:
        chosen = [scores[i, i if head == 0 else head - 1] for i, head in enumerate(heads)]
        return float(np.log(np.clip(chosen, 1e-30, None)).sum())

    every = itertools.product(range(size + 1), repeat=size)
    trees = [heads for heads in every if slow_fault([*heads]) is None]
    found = tuple(best_tree(scores))
    assert found in trees
    assert weigh(found) == pytest.approx(max(map(weigh, trees)))
