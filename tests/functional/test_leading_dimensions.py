"""Each function treats everything in its leading dimensions alone, however many these are."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from syncattn_fairseq.functional import (
    additive_scores,
    biaffine_scores,
    constant_log_gates,
    distances_from,
    expected_distances,
    flexible_attention,
    forget_log_gates,
    gap_heights,
    gated_attention,
    linear_biases,
    local_attention,
    parent_gaussian,
    parent_scaled_scores,
    parser_scores,
    planted_losses,
    planted_target,
    predicted_position,
    project_attention,
    project_distances,
    relative_buckets,
    relative_depth_scores,
    rotary_angles,
    rotate,
    sync_attention_loss,
    sync_mse_loss,
    sync_rank_loss,
    syntactic_distances,
    syntax_directed_attention,
    tree_depths,
    tree_distances,
)
from syncattn_fairseq.functional.controls.supervised_gate import supervised_log_gates
from syncattn_fairseq.functional.controls.tree_planted import count_words
from syncattn_fairseq.functional.dbsa import gold_parent_surprisals, visible_gold_parents
from syncattn_fairseq.functional.lpsi import last_syntactic_distance, log_gates, log_gates_of_last

LEADING = (2, 3)
T, S, d = 5, 6, 4


def numbers(*shape: int) -> Tensor:
    return torch.rand(*LEADING, *shape).double()


def trees() -> Tensor:
    """Each word but the first hangs from one before it."""
    return (numbers(T) * torch.arange(T)).long()


def labels() -> Tensor:
    return torch.randint(-1, T, (*LEADING, T))


def depths() -> Tensor:
    return torch.randint(0, 4, (*LEADING, T))


def starts() -> Tensor:
    return (torch.arange(T) // 2 * 2).expand(*LEADING, T)


def between() -> Tensor:
    """Distances of words of two subwords; in each sentence, some tokens at its end are none."""
    words = starts() // 2
    outside = padding()
    distances = (words.unsqueeze(-1) - words.unsqueeze(-2)).abs()
    return distances.masked_fill(outside.unsqueeze(-1) | outside.unsqueeze(-2), -1)


def padding() -> Tensor:
    return torch.arange(T) >= torch.randint(1, T + 1, (*LEADING, 1))


#: Each function with what makes its inputs.
FUNCTIONS: dict[str, tuple[Callable[..., Tensor], Callable[[], list[Tensor]]]] = {
    "biaffine": (
        biaffine_scores,
        lambda: [numbers(T, d), numbers(S, d), numbers(d, d), numbers(d)],
    ),
    "parser": (parser_scores, lambda: [numbers(T, d), numbers(S, d), numbers(d, d), numbers(d)]),
    "surprisals": (
        lambda attention, parents: gold_parent_surprisals(
            attention, parents, visible_gold_parents(parents, True)
        ),
        lambda: [numbers(T, T), labels()],
    ),
    "labels": (lambda parents: visible_gold_parents(parents, causal=True), lambda: [labels()]),
    "projected": (project_attention, lambda: [numbers(S, S), numbers(T, S)]),
    "backward": (project_attention, lambda: [numbers(S, S), numbers(T, S), numbers(S, T)]),
    "attention loss": (sync_attention_loss, lambda: [numbers(T, T), numbers(T, T), padding()]),
    "distances": (syntactic_distances, lambda: [numbers(T, d), numbers(3, d), numbers()]),
    "last distance": (last_syntactic_distance, lambda: [numbers(T, d), numbers(3, d), numbers()]),
    "gates": (log_gates, lambda: [numbers(T)]),
    "causal gates": (lambda x: log_gates(x, 2.0, causal=True), lambda: [numbers(T)]),
    "last gates": (log_gates_of_last, lambda: [numbers(T)]),
    "gated": (gated_attention, lambda: [numbers(T, T), numbers(T, T)]),
    "projected distances": (project_distances, lambda: [numbers(S), numbers(T, S)]),
    "distance loss": (sync_mse_loss, lambda: [numbers(T), numbers(T), padding()]),
    "rank loss": (sync_rank_loss, lambda: [numbers(T), numbers(T), padding()]),
    "density": (lambda parents: parent_gaussian(parents, S), lambda: [numbers(T)]),
    "parent only": (lambda parents: parent_gaussian(parents, S, 0), lambda: [numbers(T)]),
    "scaled": (parent_scaled_scores, lambda: [numbers(T, d), numbers(T, d), numbers(T, T)]),
    "relative depth": (
        lambda q, depths: relative_depth_scores(q, depths, torch.arange(5 * d).double().view(5, d)),
        lambda: [numbers(2, T, d), depths()],
    ),
    "additive": (
        lambda q, k: additive_scores(q, k, torch.arange(d).double()),
        lambda: [numbers(T, d), numbers(S, d)],
    ),
    "forget gates": (forget_log_gates, lambda: [numbers(T)]),
    "constant gates": (constant_log_gates, lambda: [labels().unsqueeze(-1)]),
    "slopes": (lambda x: linear_biases(x, torch.arange(3)), lambda: [numbers(T, S)]),
    "buckets": (relative_buckets, lambda: [40 * labels()]),
    "turned": (lambda x: rotate(x, rotary_angles(torch.arange(T), d)), lambda: [numbers(T, d)]),
    "planted": (lambda a, d: planted_losses(a, d, causal=True), lambda: [numbers(T, T), between()]),
    "planted target": (planted_target, lambda: [between()]),
    "words": (count_words, lambda: [between()]),
    "position": (predicted_position, lambda: [numbers(T), numbers()]),
    "local": (local_attention, lambda: [numbers(S), numbers()]),
    "flexible": (flexible_attention, lambda: [numbers(S), numbers(), numbers()]),
    "tree depths": (tree_depths, lambda: [trees()]),
    "tree distances": (tree_distances, lambda: [trees()]),
    "distances from": (distances_from, lambda: [S * numbers(T), numbers(S, S)]),
    "expected distances": (expected_distances, lambda: [numbers(T, S), numbers(S, S)]),
    "syntax-directed": (syntax_directed_attention, lambda: [numbers(S), 9 * numbers(S)]),
    "supervised gates": (supervised_log_gates, lambda: [numbers(T)]),
    "gap heights": (gap_heights, lambda: [trees(), starts()]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_is_treated_alone(name):
    torch.manual_seed(0)
    function, make = FUNCTIONS[name]
    inputs = make()
    together = function(*inputs)
    alone = torch.stack(
        [function(*row) for row in zip(*(x.flatten(0, 1) for x in inputs), strict=True)]
    )
    if together.dim() == 0:  # a loss
        torch.testing.assert_close(together, alone.sum())
    else:
        torch.testing.assert_close(together, alone.unflatten(0, LEADING))
