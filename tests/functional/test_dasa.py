import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from syncattn_fairseq.functional import (
    log_tree_weights,
    released_tree_weights,
    tree_distances,
    tree_weights,
)
from syncattn_fairseq.modules import BatchView
from syncattn_fairseq.modules.heads import DasaHeads, Scope
from tests.functional import reference
from tests.functional.test_sdatt import random_parents, seeds


def draw(words: int, seed: int) -> tuple[Tensor, list[int]]:
    """Return the distances of subwords, and the word of each."""
    torch.manual_seed(seed)
    between = tree_distances(random_parents(words).unsqueeze(0))[0]
    owner = [w for w, n in enumerate(torch.randint(1, 4, (words,)).tolist()) for _ in range(n)]
    return between[owner][:, owner], owner


@given(st.integers(1, 6), st.floats(0, 3), seeds)
def test_weights_equal_the_loop(words, strength, seed):
    distances, owner = draw(words, seed)
    reading, released = tree_weights(distances.double(), strength), released_tree_weights(distances)
    for i, row in enumerate(distances.tolist()):
        inverse = {w: 1 / (row[owner.index(w)] + 1e-9) for w in range(words)}
        for j, distance in enumerate(row):
            assert reading[i, j].item() == pytest.approx(1 + strength * math.exp(-distance))
            expected = inverse[owner[j]] / sum(inverse.values())
            assert released[i, j].item() == pytest.approx(expected, rel=1e-6)
    torch.testing.assert_close(released, (distances == 0).float(), atol=1e-7, rtol=0)


@given(st.lists(st.floats(0, 2), min_size=2, max_size=2), st.floats(0, 3))
def test_the_logarithms_equal_the_loop(weights, strength):
    found = log_tree_weights(torch.tensor([weights, weights], dtype=torch.float64), strength)
    for weight, value in zip(weights, found[0].tolist(), strict=True):
        assert value == pytest.approx(strength * math.log(max(weight, 1e-9)))


def test_attention_fades_with_a_power_of_the_distance_if_weights_are_above_the_limit():
    """So it would, but the release's own inverse distance leaves all others at the limit."""
    distances = torch.tensor([[1.0, 2.0, 4.0]] * 3)
    factors = log_tree_weights(1 / distances, strength=0.5).exp()
    torch.testing.assert_close(factors, distances**-0.5)
    tree = tree_distances(torch.tensor([[1, 2, 2, 2, 3]]))[0]
    found = log_tree_weights(released_tree_weights(tree.double()), strength=0.5)
    expected = torch.full_like(found, 0.5 * math.log(1e-9)).fill_diagonal_(0)
    torch.testing.assert_close(found, expected, atol=1e-8, rtol=0)


def test_gradients_of_the_logarithms():
    weights = (torch.rand(4, 4, dtype=torch.float64) + 0.1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: log_tree_weights(x, 0.7), weights)
    low = torch.zeros(2, 2, requires_grad=True)
    log_tree_weights(low).sum().backward()
    assert low.grad.eq(0).all(), "below the limit nothing flows, and nothing is infinite"


@pytest.mark.parametrize(
    "form",
    [
        ("reading", 0.5, lambda s, d: s * (1 + 0.5 * math.exp(-d))),
        ("released", 1.0, lambda s, d: s * (d == 0)),
        ("log", 0.1, lambda s, d: s + 0.1 * math.log(1e-9) * (d > 0)),
    ],
)
def test_heads_attend_with_scaled_scores(form):
    name, strength, weigh = form
    distances, _ = draw(4, seed=1)
    view, size = BatchView(), len(distances)
    tokens = torch.zeros(1, size)
    view.fill(tokens, tokens.bool(), {"src_tree_distances": distances.unsqueeze(0)})
    query, key, value = torch.randn(3, 1, 2, size, 4).double()
    heads = DasaHeads(2, 4, view, "tree", name, strength)
    contexts = heads.attend(query, key, value, Scope(None, None, False, torch.nn.Identity()))
    for h in range(2):
        for t in range(size):
            scores = (query[0, h, t] @ key[0, h].T / 2).tolist()
            scaled = [weigh(s, int(d)) for s, d in zip(scores, distances[t], strict=True)]
            expected = torch.tensor(reference.softmax(scaled)).double() @ value[0, h]
            torch.testing.assert_close(contexts[0, h, t], expected, atol=1e-6, rtol=1e-6)
