import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq import functional as f
from syncattn_fairseq.functional.lpsi import last_syntactic_distance, log_gates, log_gates_of_last
from tests.functional import reference

lengths = st.integers(1, 9)
seeds = st.integers(0, 2**31)
temperatures = st.sampled_from([0.5, 1.0, 10.0])


def random_distances(*shape: int, saturated: bool = False) -> torch.Tensor:
    """Distances from -1 to 1; of saturated ones many differ by 1 or more, and some not at all."""
    if saturated:
        return torch.randint(-1, 2, shape).float()
    return torch.rand(*shape) * 2 - 1


@given(lengths, st.integers(1, 4), st.integers(0, 6), seeds)
def test_syntactic_distances_equal_the_loop(T, d, M, seed):
    torch.manual_seed(seed)
    keys, weight, bias = torch.randn(2, 3, T, d), torch.randn(3, M + 1, d), torch.randn(3)
    shared = weight.expand(2, -1, -1, -1), bias.expand(2, 3)
    reference.check(2, f.syntactic_distances, keys, *shared)
    broadcast = f.syntactic_distances(keys, weight, bias)
    torch.testing.assert_close(broadcast, f.syntactic_distances(keys, *shared))


@given(lengths, temperatures, st.booleans(), st.booleans(), seeds)
def test_gates_equal_the_loop(T, temperature, causal, saturated, seed):
    torch.manual_seed(seed)
    distances = random_distances(2, 3, T, saturated=saturated)
    reference.check(2, f.distance_gates, distances, shared=[temperature, causal])


@given(lengths, temperatures)
def test_constant_gates_are_those_of_distances_of_0(T, temperature):
    places = torch.arange(T)
    constant = f.constant_log_gates(places - places.unsqueeze(1))
    gates = f.distance_gates(torch.zeros(T), temperature)
    torch.testing.assert_close(constant.exp(), gates)


def test_saturated_gates_are_exactly_open_or_shut():
    gates = f.distance_gates(torch.tensor([0.0, 1.0, -1.0, 0.0, 0.0]))
    assert gates[3].tolist() == [0, 1, 1, 1, 1], "the second word's boundary shuts the first out"
    assert gates[0].tolist() == [1, 1, 0, 0, 0]
    assert gates[1].tolist() == [1, 1, 1, 1, 1]


@given(lengths, temperatures, st.booleans(), seeds)
def test_the_last_row_can_be_had_alone(T, temperature, saturated, seed):
    torch.manual_seed(seed)
    distances = random_distances(2, 3, T, saturated=saturated)
    row = log_gates_of_last(distances, temperature)
    torch.testing.assert_close(row, log_gates(distances, temperature, causal=True)[..., -1, :])


def test_attention_behind_shut_gates_is_lost():
    gated = f.gated_attention(
        torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([[0.0, 1.0]] * 2)
    )
    assert gated.tolist() == [[0, 0], [0, 1]]


def test_an_empty_batch_has_no_loss():
    for loss in (f.sync_mse_loss, f.sync_rank_loss):
        assert loss(torch.zeros(0, 3), torch.zeros(0, 3)).item() == 0


@given(lengths, st.booleans(), seeds)
def test_gated_attention_is_a_softmax_of_scores_and_log_gates(T, saturated, seed):
    torch.manual_seed(seed)
    scores, distances = torch.randn(2, T, T), random_distances(2, T, saturated=saturated)
    gated = f.gated_attention(scores.softmax(-1), f.distance_gates(distances))
    torch.testing.assert_close(gated.sum(-1), torch.ones(2, T))
    torch.testing.assert_close(gated, (scores + log_gates(distances)).softmax(-1))


@given(lengths, lengths, seeds)
def test_projected_distances_equal_the_loop(S, T, seed):
    torch.manual_seed(seed)
    e, c = torch.randn(2, S), torch.randn(2, T, S).softmax(-1)
    expected = torch.stack([c[b] @ e[b] for b in range(2)])
    torch.testing.assert_close(f.project_distances(e, c), expected)


@given(st.integers(1, 4), lengths, st.sampled_from([0.1, 1.0]), st.booleans(), seeds)
def test_losses_equal_the_loop(B, T, margin, ties, seed):
    torch.manual_seed(seed)
    distances, projected = random_distances(B, T, saturated=ties), torch.randn(B, T)
    padding = torch.rand(B, T) < 0.3
    assert f.sync_mse_loss(distances, projected, padding).item() == pytest.approx(
        reference.sync_mse_loss(distances, projected, padding), rel=1e-5, abs=1e-5
    )
    assert f.sync_rank_loss(distances, projected, padding, margin).item() == pytest.approx(
        reference.sync_rank_loss(distances, projected, padding, margin), rel=1e-5, abs=1e-5
    )


def test_without_padding_every_word_takes_part():
    d, p = torch.tensor([[0.1, 0.5, -0.2]]), torch.tensor([[0.0, 0.0, 0.5]])
    assert f.sync_mse_loss(d, p).item() == pytest.approx(0.01 + 0.25 + 0.49)
    # pairs: (0, 1) 1 - (-1)(0) = 1; (0, 2) 1 - (1)(-0.5) = 1.5; (1, 2) 1.5
    assert f.sync_rank_loss(d, p).item() == pytest.approx(4.0)


def test_gradients_are_finite_at_saturated_gates():
    distances = random_distances(4, 30, saturated=True).requires_grad_()
    scores = torch.randn(4, 30, 30, requires_grad=True)
    (scores + log_gates(distances)).softmax(-1).square().sum().backward()
    assert distances.grad is not None and distances.grad.isfinite().all()
    assert scores.grad is not None and scores.grad.isfinite().all()


@given(lengths, st.integers(0, 5), seeds)
def test_the_last_distance_alone_is_the_last_of_all(T, look_back, seed):
    torch.manual_seed(seed)
    keys, weight, bias = torch.randn(2, 3, T, 4), torch.randn(3, look_back + 1, 4), torch.randn(3)
    expected = f.syntactic_distances(keys, weight, bias)[..., -1]
    torch.testing.assert_close(last_syntactic_distance(keys, weight, bias), expected)
