import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from syncattn_fairseq.functional import planted_losses, planted_target
from syncattn_fairseq.functional.controls.tree_planted import attention_between_words, count_words
from tests.functional import reference
from tests.functional.test_sdatt import random_parents, seeds


def random_words(count: int, left: int) -> list[list[int]]:
    """Put words of one to three subwords beside each other, the first after some padding."""
    words, first = [], left
    for size in torch.randint(1, 4, (count,)).tolist():
        words.append([*range(first, first + size)])
        first += size
    return words


def spread(words: list[list[int]], distances: list[list[int]], length: int) -> Tensor:
    """Spread the distances of words over their subwords; -1 where there is no word."""
    by_subword = torch.full((length, length), -1)
    for w, rows in enumerate(words):
        for v, columns in enumerate(words):
            for i in rows:
                by_subword[i, columns] = distances[w][v]
    return by_subword


@given(st.integers(1, 5), st.integers(0, 2), st.integers(1, 3), st.booleans(), seeds)
def test_the_loss_equals_the_loop(count, left, right, causal, seed):
    torch.manual_seed(seed)
    words = random_words(count, left)
    tree = reference.tree_distances(random_parents(count).tolist())
    length = words[-1][-1] + 1 + right  # the end of the sentence, and padding
    future = torch.ones(length, length).triu(1).bool() & causal
    attention = torch.randn(length, length).double().masked_fill(future, -torch.inf).softmax(-1)
    distances = spread(words, tree, length)
    losses = planted_losses(attention, distances, causal)
    expected = reference.planted_loss(attention.tolist(), words, tree, causal)
    assert losses.sum().item() == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert losses[:left].eq(0).all() and losses[length - right :].eq(0).all()
    assert count_words(distances).item() == pytest.approx(count)


def test_a_target_by_hand():
    """Three words in a chain, the second of two subwords; then the end of the sentence."""
    chain = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    distances = spread([[0], [1, 2], [3]], chain, 5)
    a, b = math.exp(-1), math.exp(-2)
    first = [1, a / 2, a / 2, b, 0]
    middle = [a, 0.5, 0.5, a, 0]
    expected = torch.tensor([first, middle, middle, [b, a / 2, a / 2, 1, 0]])
    expected = torch.cat([expected / expected.sum(-1, keepdim=True), torch.zeros(1, 5)])
    torch.testing.assert_close(planted_target(distances), expected)
    seen = [[1, 0, 0, 0, 0], [a, 0.5, 0.5, 0, 0], [a, 0.5, 0.5, 0, 0]]
    expected[:3] = torch.tensor(seen) / torch.tensor(seen).sum(-1, keepdim=True)
    torch.testing.assert_close(planted_target(distances, causal=True), expected)


def test_a_word_gets_the_sum_and_gives_the_mean_of_its_subwords():
    attention = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.4, 0.0]])
    distances = torch.tensor([[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    expected = torch.tensor([[0.35, 0.35, 0.65], [0.35, 0.35, 0.65], [1.0, 1.0, 0.0]])
    torch.testing.assert_close(attention_between_words(attention, distances), expected)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_on_target_costs_nothing_and_its_end_costs(causal):
    distances = spread([[0], [1, 2], [3]], [[0, 1, 2], [1, 0, 1], [2, 1, 0]], 5)
    target = planted_target(distances, causal)
    torch.testing.assert_close(planted_losses(target, distances, causal), torch.zeros(5))
    half = target / 2  # the other half goes to the end of the sentence
    half[:, -1] = 0.5
    assert planted_losses(half, distances, causal).sum().item() == pytest.approx(3 * math.log(2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_it_is_finite_where_a_probability_underflows(dtype):
    scores = torch.tensor([[0.0, -1e4], [0.0, 0.0]], dtype=dtype, requires_grad=True)
    loss = planted_losses(scores.softmax(-1), torch.tensor([[0, 1], [1, 0]])).sum()
    (loss * 2.0**7).backward()
    assert loss.dtype == torch.float32 and loss.isfinite() and loss > 5
    assert scores.grad is not None and scores.grad.isfinite().all()


def test_attention_counts_as_at_least_1e_30():
    distances = torch.tensor([[0, 1], [1, 0]])
    near, far = planted_target(distances)[0].tolist()
    loss = planted_losses(torch.tensor([[1.0, 0.0], [0.5, 0.5]]), distances)[0].item()
    expected = near * math.log(near) + far * math.log(far / 1e-30)
    assert loss == pytest.approx(expected, rel=1e-5)


def test_without_words_there_is_no_loss():
    attention = torch.ones(2, 3, 3, requires_grad=True)
    nothing = torch.full((2, 3, 3), -1)
    losses = planted_losses(attention / 3, nothing)
    losses.sum().backward()
    assert losses.eq(0).all() and count_words(nothing).eq(0).all()
    assert attention.grad is not None and attention.grad.eq(0).all()
