"""Everything is computed in float32, under autocast too, and has the right gradient."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from syncattn_fairseq import functional as f
from syncattn_fairseq.functional.controls.supervised_gate import supervised_log_gates
from syncattn_fairseq.functional.lpsi import last_syntactic_distance, log_gates, log_gates_of_last

COLUMNS = torch.tensor([[1, 1, 0, 4, 2], [3, 0, -1, 3, -1]])
CHAIN = (torch.arange(5) - torch.arange(5).unsqueeze(1)).abs()
#: Each function with the shapes of its inputs.
FUNCTIONS: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "biaffine": (f.biaffine_scores, [(2, 5, 4), (2, 6, 4), (4, 4), (4,)]),
    "parser": (f.parser_scores, [(2, 5, 4), (2, 6, 4), (4, 4), (4,)]),
    "dependency loss": (lambda a: f.dependency_loss(a, COLUMNS)[0], [(2, 5, 5)]),
    "causal dependency loss": (lambda a: f.dependency_loss(a, COLUMNS, True)[0], [(2, 5, 5)]),
    "projected attention": (f.project_attention, [(2, 6, 6), (2, 5, 6), (2, 6, 5)]),
    "attention loss": (lambda *x: f.sync_attention_loss(*x, COLUMNS == 3), [(2, 5, 5), (2, 5, 5)]),
    "distances": (f.syntactic_distances, [(2, 5, 4), (3, 4), ()]),
    "last distance": (last_syntactic_distance, [(2, 5, 4), (3, 4), ()]),
    "gates": (log_gates, [(2, 6)]),
    "steep gates": (lambda d: f.distance_gates(d, 2.0), [(2, 6)]),
    "causal gates": (lambda d: f.distance_gates(d, 2.0, causal=True), [(2, 6)]),
    "gates of last": (log_gates_of_last, [(2, 6)]),
    "forget gates": (lambda x: f.forget_log_gates(-x), [(2, 6)]),
    "slopes": (lambda m: f.linear_biases(COLUMNS.abs().unsqueeze(0), m), [(3,)]),
    "gated": (f.gated_attention, [(2, 5, 5), (2, 5, 5)]),
    "projected distances": (f.project_distances, [(2, 6), (2, 5, 6)]),
    "distance loss": (f.sync_mse_loss, [(2, 6), (2, 6)]),
    "rank loss": (f.sync_rank_loss, [(2, 6), (2, 6)]),
    "density": (lambda parents: f.parent_gaussian(parents, 6), [(2, 5)]),
    "scaled": (f.parent_scaled_scores, [(2, 5, 4), (2, 5, 4), (2, 5, 5)]),
    "relative depth": (lambda q, a: f.relative_depth_scores(q, COLUMNS, a), [(2, 3, 5, 4), (5, 4)]),
    "additive": (f.additive_scores, [(2, 3, 4), (2, 5, 4), (4,)]),
    "planted": (lambda a: f.planted_losses(a, CHAIN), [(2, 5, 5)]),
    "causal planted": (lambda a: f.planted_losses(a, CHAIN, True), [(2, 5, 5)]),
    "position": (lambda a: f.predicted_position(a, torch.tensor([5, 6])), [(2, 3)]),
    "local": (f.local_attention, [(2, 5), (2,)]),
    "narrow": (lambda *x: f.local_attention(*x, 2), [(2, 5), (2,)]),
    "renormalised": (lambda *x: f.local_attention(*x, 2, renormalise=True), [(2, 5), (2,)]),
    "flexible": (f.flexible_attention, [(2, 5), (2,), (2,)]),
    "expected distances": (f.expected_distances, [(2, 3, 5), (2, 5, 5)]),
    "syntax-directed": (f.syntax_directed_attention, [(2, 5), (2, 5)]),
    "supervised gates": (supervised_log_gates, [(2, 6)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_half_precision_is_computed_in_float32(name):
    function, shapes = FUNCTIONS[name]
    torch.manual_seed(0)
    inputs = [torch.rand(shape).bfloat16() for shape in shapes]
    result = function(*inputs)
    assert result.dtype == torch.float32
    exact = function(*(x.double() for x in inputs))
    torch.testing.assert_close(result.double(), exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_autocast_changes_nothing(name):
    function, shapes = FUNCTIONS[name]
    torch.manual_seed(0)
    inputs = [torch.rand(shape) for shape in shapes]
    with torch.autocast("cpu", torch.bfloat16):
        result = function(*inputs)
    assert result.dtype == torch.float32
    assert result.equal(function(*inputs))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_right(name):
    function, shapes = FUNCTIONS[name]
    torch.manual_seed(0)
    inputs = [torch.rand(shape).double().requires_grad_() for shape in shapes]
    assert torch.autograd.gradcheck(function, inputs)


def test_defaults_are_those_of_the_papers():
    torch.manual_seed(0)
    scores, position, narrow = torch.randn(30), torch.tensor(14.6), torch.tensor(0.5)
    far, heights = torch.arange(30), torch.randint(0, 9, (6,))
    for default, chosen in (
        (f.local_attention(scores, position), f.local_attention(scores, position, 10)),
        (
            f.flexible_attention(scores, position, narrow),
            f.flexible_attention(scores, position, narrow, 10),
        ),
        (f.syntax_directed_attention(scores, far), f.syntax_directed_attention(scores, far, 4)),
        (f.supervised_gates(heights.float()), f.supervised_gates(heights.float(), 10)),
        (supervised_log_gates(heights.float()), f.supervised_gates(heights.float(), 10).log()),
        (f.parent_gaussian(position[None], 30), f.parent_gaussian(position[None], 30, 1)),
    ):
        torch.testing.assert_close(default, chosen)
