"""What holds for each function: leading dimensions, half precision, autocast, gradients."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from syncattn_fairseq import functional as f
from syncattn_fairseq.functional.controls.tree_planted import count_words
from syncattn_fairseq.functional.lpsi import last_syntactic_distance, log_gates, log_gates_of_last

LEADING = (2, 3)
T, S, d = 5, 6, 4


def labels() -> Tensor:
    return torch.randint(-1, T, (*LEADING, T))


def edges() -> Tensor:
    return torch.randint(0, 9, (*LEADING, T, S))


def trees() -> Tensor:
    """Each word but the first hangs from one before it."""
    return (torch.rand(*LEADING, T) * torch.arange(T)).long()


def starts() -> Tensor:
    return (torch.arange(T) // 2 * 2).expand(*LEADING, T)


def padding() -> Tensor:
    return torch.arange(T) >= torch.randint(1, T + 1, (*LEADING, 1))


def between() -> Tensor:
    """Distances of words of two subwords; in each sentence, some tokens at its end are none."""
    words, outside = starts() // 2, padding()
    distances = (words.unsqueeze(-1) - words.unsqueeze(-2)).abs()
    return distances.masked_fill(outside.unsqueeze(-1) | outside.unsqueeze(-2), -1)


#: Each function with the shapes of its inputs, each after leading dimensions; what makes further
#: inputs, without gradients; and the shapes of parameters, without leading dimensions.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "biaffine": (f.biaffine_scores, [(T, d), (S, d), (d, d), (d,)]),
    "dependency loss": (lambda *x: f.dependency_loss(*x)[0], [(T, T)], [labels]),
    "causal dependency loss": (lambda *x: f.dependency_loss(*x, True)[0], [(T, T)], [labels]),
    "projected": (f.project_attention, [(S, S), (T, S)]),
    "backward": (f.project_attention, [(S, S), (T, S), (S, T)]),
    "attention loss": (f.sync_attention_loss, [(T, T), (T, T)], [padding]),
    "distances": (f.syntactic_distances, [(T, d), (3, d), ()]),
    "last distance": (last_syntactic_distance, [(T, d), (3, d), ()]),
    "gates": (log_gates, [(T,)]),
    "steep gates": (lambda x: f.distance_gates(x, 2.0), [(T,)]),
    "causal gates": (lambda x: f.distance_gates(x, 2.0, causal=True), [(T,)]),
    "last gates": (log_gates_of_last, [(T,)]),
    "gated": (f.gated_attention, [(T, T), (T, T)]),
    "projected distances": (f.project_distances, [(S,), (T, S)]),
    "distance loss": (f.sync_mse_loss, [(T,), (T,)], [padding]),
    "rank loss": (f.sync_rank_loss, [(T,), (T,)], [padding]),
    "density": (lambda parents: f.parent_gaussian(parents, S), [(T,)]),
    "parent only": (lambda parents: f.parent_gaussian(parents, S, 0), [(T,)]),
    "scaled": (f.parent_scaled_scores, [(T, d), (T, d), (T, T)]),
    "additive": (f.additive_scores, [(T, d), (S, d)], [], [(d,)]),
    "guided alignment": (f.guided_alignment_loss, [(T, S)], [lambda: edges() // 6]),
    "forget gates": (lambda x: f.forget_log_gates(-x), [(T,)]),
    "slopes": (f.linear_biases, [], [edges], [(3,)]),
    "planted": (f.planted_losses, [(T, T)], [between]),
    "causal planted": (lambda *x: f.planted_losses(*x, True), [(T, T)], [between]),
    "position": (f.predicted_position, [(T,), (1,)]),
    "local": (f.local_attention, [(S,), ()]),
    "narrow": (lambda *x: f.local_attention(*x, 2), [(S,), ()]),
    "renormalised": (lambda *x: f.local_attention(*x, 2, renormalise=True), [(S,), ()]),
    "flexible": (f.flexible_attention, [(S,), (), ()]),
    "expected distances": (f.expected_distances, [(T, S), (S, S)]),
    "syntax-directed": (lambda e, m: f.syntax_directed_attention(e, 8 * m), [(S,), (S,)]),
    "supervised gates": (f.supervised_log_gates, [(T,)]),
}
#: Those that read no probabilities, or return the type of their inputs.
OTHERS: dict[str, tuple[Any, ...]] = {
    "constant gates": (f.constant_log_gates, [], [edges]),
    "buckets": (lambda x: f.relative_buckets(40 * x), [], [edges]),
    "turned": (lambda x: f.rotate(x, f.rotary_angles(torch.arange(T), d)), [(T, d)]),
    "tree weights": (f.tree_weights, [], [between]),
    "released tree weights": (f.released_tree_weights, [], [between]),
    "log tree weights": (lambda x: f.log_tree_weights(x.exp(), 2.0), [(T, T)]),
    "planted target": (f.planted_target, [], [between]),
    "words": (count_words, [], [between]),
    "tree distances": (f.tree_distances, [], [trees]),
    "distances from": (lambda p, m: f.distances_from(S * p, m), [(T,), (S, S)]),
    "gap heights": (f.gap_heights, [], [trees, starts]),
}


def prepare(
    function: Callable[..., Tensor],
    shapes: list[tuple[int, ...]],
    others: list[Callable[[], Tensor]] | None = None,
    parameters: list[tuple[int, ...]] | None = None,
) -> tuple[Callable[..., Tensor], list[Tensor], list[Tensor], list[Tensor]]:
    torch.manual_seed(0)
    inputs = [torch.rand(*LEADING, *shape).double() for shape in shapes]
    shared = [torch.rand(shape).double() for shape in parameters or []]
    return function, inputs, [make() for make in others or []], shared


@pytest.mark.parametrize("name", FUNCTIONS | OTHERS)
def test_everything_in_the_leading_dimensions_is_treated_alone(name):
    function, inputs, others, shared = prepare(*(FUNCTIONS | OTHERS)[name])
    batched = [*inputs, *others]
    together = function(*batched, *shared)
    rows = zip(*(x.flatten(0, 1) for x in batched), strict=True)
    alone = torch.stack([function(*row, *shared) for row in rows])
    if together.dim() == 0:  # a loss
        torch.testing.assert_close(together, alone.sum())
    else:
        torch.testing.assert_close(together, alone.unflatten(0, LEADING))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_half_precision_is_computed_in_float32(name):
    function, inputs, others, shared = prepare(*FUNCTIONS[name])
    half = [[x.bfloat16() for x in tensors] for tensors in (inputs, shared)]
    result = function(*half[0], *others, *half[1])
    assert result.dtype == torch.float32
    exact = function(*(x.double() for x in half[0]), *others, *(x.double() for x in half[1]))
    torch.testing.assert_close(result.double(), exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_autocast_changes_nothing(name):
    function, inputs, others, shared = prepare(*FUNCTIONS[name])
    single = [*(x.float() for x in inputs), *others, *(x.float() for x in shared)]
    with torch.autocast("cpu", torch.bfloat16):
        result = function(*single)
    assert result.dtype == torch.float32
    assert result.equal(function(*single))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_right(name):
    function, inputs, others, shared = prepare(*FUNCTIONS[name])
    for tensor in (*inputs, *shared):
        tensor.requires_grad_()
    assert torch.autograd.gradcheck(function, [*inputs, *others, *shared], fast_mode=True)


def test_defaults_are_those_of_the_papers():
    torch.manual_seed(0)
    scores, position, narrow = torch.randn(30), torch.tensor(14.6), torch.tensor(0.5)
    far, heights = torch.arange(30), torch.randint(0, 9, (6,)).float()
    for function, inputs, default in (
        (f.local_attention, (scores, position), 10),
        (f.flexible_attention, (scores, position, narrow), 10),
        (f.syntax_directed_attention, (scores, far), 4),
        (f.supervised_log_gates, (heights,), 10),
        (f.parent_gaussian, (position[None], 30), 1),
    ):
        torch.testing.assert_close(function(*inputs), function(*inputs, default))
