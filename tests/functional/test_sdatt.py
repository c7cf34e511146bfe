import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq import functional as f
from tests.functional import reference

lengths = st.integers(1, 9)
windows = st.integers(1, 4)
seeds = st.integers(0, 2**31)


def random_parents(length: int) -> torch.Tensor:
    """A tree whose words stand in no order: each but one hangs from one that came before."""
    order = torch.randperm(length)
    parents = torch.empty(length, dtype=torch.long)
    for number, word in enumerate(order.tolist()):
        parents[word] = order[torch.randint(0, max(number, 1), ())]
    return parents


def close(actual: torch.Tensor, expected: list) -> None:
    torch.testing.assert_close(
        actual.double(), torch.tensor(expected).double(), rtol=1e-5, atol=1e-5
    )


@given(lengths, st.integers(1, 5), seeds)
def test_additive_scores_equal_the_loop(S, a, seed):
    torch.manual_seed(seed)
    query, key, weight = torch.randn(2, 3, a), torch.randn(2, S, a), torch.randn(a)
    reference.check(1, f.additive_scores, query, key, shared=[weight])


def test_additive_scores_keep_half_for_their_gradient():
    torch.manual_seed(0)
    query, key, weight = (
        torch.randn(*n).bfloat16().requires_grad_() for n in [(2, 3, 4), (2, 5, 4), (4,)]
    )
    saved: list[torch.Tensor] = []

    def keep(x: torch.Tensor) -> torch.Tensor:
        saved.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        scores = f.additive_scores(query, key, weight)
    assert [x.dtype for x in saved if x.numel() >= 2 * 3 * 5 * 4] == [torch.bfloat16]
    wide = [x.detach().float().requires_grad_() for x in (query, key, weight)]
    exact = f.additive_scores(*wide)
    assert torch.equal(scores, exact)
    gradients = torch.autograd.grad(scores.square().sum(), (query, key, weight))
    expected = torch.autograd.grad(exact.square().sum(), wide)
    torch.testing.assert_close(gradients, expected, rtol=0.02, atol=0.05, check_dtype=False)


def test_a_predicted_position_lies_in_its_sentence():
    activation = torch.tensor([[-100.0, 0.0, 100.0]] * 2)
    positions = f.predicted_position(activation, torch.tensor([[3], [9]]))
    close(positions, [[0, 1.5, 3], [0, 4.5, 9]])


@given(lengths, windows, seeds, st.booleans())
def test_local_attention_equals_the_loop(S, D, seed, renormalise):
    torch.manual_seed(seed)
    scores, position = torch.randn(2, 3, S), torch.rand(2, 3) * (S - 1)
    reference.check(2, f.local_attention, scores, position, shared=[D, renormalise])


@given(lengths, windows, seeds)
def test_flexible_attention_equals_the_loop(S, D, seed):
    torch.manual_seed(seed)
    scores, position, sharpness = torch.randn(2, S), torch.rand(2) * S, torch.rand(2)
    reference.check(1, f.flexible_attention, scores, position, sharpness, shared=[D])


def test_the_figure_of_the_paper():
    """Heads 3 3 5 5 0 9 6 9 5. The figure has a 5 where the eighth word is, and 3, apart."""
    heads = [3, 3, 5, 5, 0, 9, 6, 9, 5]
    parents = torch.tensor([[head - 1 if head else word for word, head in enumerate(heads)]])
    assert f.tree_distances(parents)[0, 2].tolist() == [1, 1, 0, 2, 1, 3, 4, 3, 2]


@given(st.integers(1, 20), seeds)
def test_tree_distances_equal_the_loop(T, seed):
    torch.manual_seed(seed)
    parents = torch.stack([random_parents(T) for _ in range(3)])
    distances = f.tree_distances(parents)
    assert distances.tolist() == [reference.tree_distances(row) for row in parents.tolist()]


def test_a_chain_is_as_long_as_its_words():
    for length in (1, 2, 3, 4, 5, 64, 65):
        distances = f.tree_distances(torch.arange(-1, length - 1).clamp_min(0).unsqueeze(0))[0]
        columns = torch.arange(length)
        assert torch.equal(distances, (columns - columns.unsqueeze(1)).abs())


def test_words_of_two_trees_meet_above_their_roots():
    distances = f.tree_distances(torch.tensor([[0, 0, 2, 2]]))[0]
    assert distances.tolist() == [[0, 1, 2, 3], [1, 0, 3, 4], [2, 3, 0, 1], [3, 4, 1, 0]]


@pytest.mark.parametrize("parents", [[1, 0], [0, 2, 3, 1], [0, 1, 2, 5, 3, 4, 3], [0, 4, 1, 2, 3]])
def test_a_cycle_is_no_tree(parents):
    rows = torch.tensor([[0] * len(parents), parents])
    with pytest.raises(ValueError, match="cycle"):
        f.tree_distances(rows)


@given(lengths, seeds)
def test_expected_distances_equal_the_loop(S, seed):
    torch.manual_seed(seed)
    scores, distances = torch.randn(2, 3, S), torch.randint(0, 7, (2, S, S))
    reference.check(1, f.expected_distances, scores, distances)


def test_attention_to_one_word_expects_the_distances_of_that_word():
    distances = f.tree_distances(torch.tensor([[1, 1, 1, 2]]))
    scores = torch.tensor([[[0.0, 0, 100, 0], [-torch.inf, 0, 0, -torch.inf]]])
    rows = f.expected_distances(scores, distances)[0]
    close(rows, [distances[0, 2].tolist(), ((distances[0, 1] + distances[0, 2]) / 2).tolist()])


@given(lengths, windows, seeds)
def test_syntax_directed_attention_equals_the_loop(S, n, seed):
    torch.manual_seed(seed)
    scores, distances = torch.randn(2, 3, S), torch.randint(0, 7, (2, 3, S))
    reference.check(2, f.syntax_directed_attention, scores, distances, shared=[n])
    weights = f.syntax_directed_attention(scores, distances, n)
    assert (weights[distances > distances.amin(-1, keepdim=True).clamp_min(n)] == 0).all()


def test_padding_has_no_weight_and_spoils_no_gradient():
    scores = torch.tensor([[0.3, -torch.inf, 0.1]], dtype=torch.float64)
    distances = torch.tensor([[0.0, 1.0, 1.0]], dtype=torch.float64, requires_grad=True)
    weights = f.syntax_directed_attention(scores, distances)
    assert weights[0, 1] == 0 and weights.sum().item() == pytest.approx(1)
    (weights**2).sum().backward()
    assert distances.grad is not None and distances.grad.isfinite().all()
    assert distances.grad[0, 2] != 0


def test_the_row_of_the_nearest_word_and_the_slope_between_two():
    distances = f.tree_distances(torch.tensor([[1, 1, 1, 2]]))
    position = torch.tensor([[0.2, 2.7, 9.0]], requires_grad=True)
    rows = f.distances_from(position, distances)
    assert rows[0].tolist() == [distances[0, word].tolist() for word in (0, 3, 3)]
    rows[0, :, 3].sum().backward()
    # To word 3 it is 3 from word 0 and 2 from word 1; 1 from word 2. Beyond the end nothing pulls.
    assert position.grad is not None and position.grad.tolist() == [[-1, -1, 0]]


@given(lengths, seeds)
def test_every_position_has_the_row_of_its_nearest_word(S, seed):
    torch.manual_seed(seed)
    distances, position = torch.randint(0, 9, (2, S, S)), torch.rand(2, 5) * (S - 1)
    rows = f.distances_from(position, distances)
    for b in range(2):
        for t in range(5):
            assert torch.equal(rows[b, t], distances[b, round(position[b, t].item())].float())
