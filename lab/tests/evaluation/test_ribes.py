import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncattn_lab.evaluation.ribes import align, compute_kendall_tau, score_sentence

sentences = st.lists(st.sampled_from("abcde"), max_size=8)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "score"),
    [
        # Positions 2 1 0 3: of 6 pairs, the 3 with the last word ascend. Nothing else is amiss.
        ("c b a d", "a b c d", 3 / 6),
        # Positions 0 1 2 of a, b and c; x is not aligned: NKT = 1, P1 = 3/4, as long as the other.
        ("a x b c", "a b c d", (3 / 4) ** 0.25),
        # Positions 0 2: NKT = 1, P1 = 1, BP = exp(1 - 3/2).
        ("a c", "a b c", math.exp(-0.5) ** 0.1),
        # A long hypothesis is punished by precision alone: P1 = 2/3.
        ("a b x", "a b", (2 / 3) ** 0.25),
        # "the" is twice in the reference, which has neither "saw the" nor "the bites": not aligned.
        # Positions 0 4 1 of the others: 2 of 3 pairs ascend; P1 = 3/5; BP = exp(1 - 6/5).
        (
            *("he cat saw the bites", "he saw in the cat the"),
            2 / 3 * (3 / 5) ** 0.25 * math.exp(-0.2) ** 0.1,
        ),
        # Too few words are aligned, but if the reference has one word.
        ("ja doch", "ja", (1 / 2) ** 0.25),
        *((*pair, 0) for pair in (("a x", "a b"), ("no", "ja"), ("", "ja"), ("ja", ""), ("", ""))),
    ],
)
def test_scores_by_hand(hypothesis, reference, score):
    assert score_sentence(hypothesis.split(), reference.split()) == pytest.approx(score)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "ranks"),
    [
        # "the" is twice on both sides. The first has no word to its left; to its right, "the dog"
        # is unique. The second one's left "bit the" is unique.
        ("the dog bit the man", "the man bit the dog", [3, 4, 2, 3, 1]),
        # Both words find the only a of the reference: x a is there once, and so is a y.
        ("x a b a y", "x a y", [0, 1, 1, 2]),
        # Neither "a x" nor "x c" is unique; two words to the left make "b a x" and "d a x".
        ("b a x c d a x c", "d a x c b a x c", [4, 5, 6, 7, 0, 1, 2, 3]),
        # "a b" is twice in the reference; "b a" and "a b a" are not in it.
        ("a b a", "a b c a b", []),
        # No n-gram that ends or begins with the middle word is unique.
        ("a a a", "a a a", [0, 2]),
        ("a b", "c", []),
        ("", "a", []),
    ],
)
def test_alignments(hypothesis, reference, ranks):
    assert align(hypothesis.split(), reference.split()) == ranks


def search(hypothesis: list[str], reference: list[str]) -> list[int]:
    """The same by looking at all n-grams of both sentences."""

    def places(ngram: list[str], words: list[str]) -> list[int]:
        size = len(ngram)
        return [k for k in range(len(words) - size + 1) if words[k : k + size] == ngram]

    ranks = []
    for i in range(len(hypothesis)):
        contexts = [(0, 0)]
        for window in range(1, len(hypothesis)):
            contexts += [(window, 0), (0, window)]
        for left, right in contexts:
            if i - left < 0 or i + right >= len(hypothesis):
                continue
            ngram = hypothesis[i - left : i + right + 1]
            if len(places(ngram, hypothesis)) == len(places(ngram, reference)) == 1:
                ranks.append(places(ngram, reference)[0] + left)
                break
    return ranks


def test_long_sentences_do_not_take_the_square_of_their_length():
    words = [*map(str, range(40_000))]
    assert score_sentence(words, words[::-1]) == 0  # 800 million pairs of words
    assert len(align(["a"] * 2000, ["a"] * 2000)) == 0  # 101 of them are nowhere unique


@given(sentences, sentences)
def test_alignment_agrees_with_a_search(hypothesis, reference):
    assert align(hypothesis, reference) == search(hypothesis, reference)
    assert 0 <= score_sentence(hypothesis, reference) <= 1


@given(st.integers(2, 7).flatmap(lambda size: st.permutations(range(size))))
def test_kendalls_tau_of_a_permutation(ranks):
    concordant = discordant = 0
    for i in range(len(ranks)):
        for j in range(i):
            if ranks[j] < ranks[i]:
                concordant += 1
            else:
                discordant += 1
    tau = (concordant - discordant) / (concordant + discordant)
    assert compute_kendall_tau(ranks) == pytest.approx((tau + 1) / 2)


def test_long_orders_are_counted_as_short_ones_are():
    ranks = np.random.default_rng(1).integers(3000, size=5001)
    ascending = np.triu(ranks[:, None] < ranks).sum()
    assert compute_kendall_tau(ranks.tolist()) == ascending / math.comb(5001, 2)


@given(st.lists(st.integers().map(str), min_size=1, unique=True))
def test_the_reference_itself_is_perfect(words):
    assert score_sentence(words, words) == 1
    assert score_sentence(words[::-1], words) == (len(words) == 1)
