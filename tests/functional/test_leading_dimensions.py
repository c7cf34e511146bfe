"""Each function treats everything in its leading dimensions alone, however many these are."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from syncattn_fairseq import functional as f
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
        f.biaffine_scores,
        lambda: [numbers(T, d), numbers(S, d), numbers(d, d), numbers(d)],
    ),
    "parser": (f.parser_scores, lambda: [numbers(T, d), numbers(S, d), numbers(d, d), numbers(d)]),
    "surprisals": (
        lambda attention, parents: gold_parent_surprisals(
            attention, parents, visible_gold_parents(parents, True)
        ),
        lambda: [numbers(T, T), labels()],
    ),
    "labels": (lambda parents: visible_gold_parents(parents, causal=True), lambda: [labels()]),
    "projected": (f.project_attention, lambda: [numbers(S, S), numbers(T, S)]),
    "backward": (f.project_attention, lambda: [numbers(S, S), numbers(T, S), numbers(S, T)]),
    "attention loss": (f.sync_attention_loss, lambda: [numbers(T, T), numbers(T, T), padding()]),
    "distances": (f.syntactic_distances, lambda: [numbers(T, d), numbers(3, d), numbers()]),
    "last distance": (last_syntactic_distance, lambda: [numbers(T, d), numbers(3, d), numbers()]),
    "gates": (log_gates, lambda: [numbers(T)]),
    "causal gates": (lambda x: log_gates(x, 2.0, causal=True), lambda: [numbers(T)]),
    "last gates": (log_gates_of_last, lambda: [numbers(T)]),
    "gated": (f.gated_attention, lambda: [numbers(T, T), numbers(T, T)]),
    "projected distances": (f.project_distances, lambda: [numbers(S), numbers(T, S)]),
    "distance loss": (f.sync_mse_loss, lambda: [numbers(T), numbers(T), padding()]),
    "rank loss": (f.sync_rank_loss, lambda: [numbers(T), numbers(T), padding()]),
    "density": (lambda parents: f.parent_gaussian(parents, S), lambda: [numbers(T)]),
    "parent only": (lambda parents: f.parent_gaussian(parents, S, 0), lambda: [numbers(T)]),
    "scaled": (f.parent_scaled_scores, lambda: [numbers(T, d), numbers(T, d), numbers(T, T)]),
    "relative depth": (
        lambda q, depths: f.relative_depth_scores(
            q, depths, torch.arange(5 * d).double().view(5, d)
        ),
        lambda: [numbers(2, T, d), depths()],
    ),
    "additive": (
        lambda q, k: f.additive_scores(q, k, torch.arange(d).double()),
        lambda: [numbers(T, d), numbers(S, d)],
    ),
    "forget gates": (f.forget_log_gates, lambda: [numbers(T)]),
    "constant gates": (f.constant_log_gates, lambda: [labels().unsqueeze(-1)]),
    "slopes": (lambda x: f.linear_biases(x, torch.arange(3)), lambda: [numbers(T, S)]),
    "buckets": (f.relative_buckets, lambda: [40 * labels()]),
    "turned": (lambda x: f.rotate(x, f.rotary_angles(torch.arange(T), d)), lambda: [numbers(T, d)]),
    "planted": (
        lambda a, d: f.planted_losses(a, d, causal=True),
        lambda: [numbers(T, T), between()],
    ),
    "planted target": (f.planted_target, lambda: [between()]),
    "words": (count_words, lambda: [between()]),
    "position": (f.predicted_position, lambda: [numbers(T), numbers()]),
    "local": (f.local_attention, lambda: [numbers(S), numbers()]),
    "flexible": (f.flexible_attention, lambda: [numbers(S), numbers(), numbers()]),
    "tree depths": (f.tree_depths, lambda: [trees()]),
    "tree distances": (f.tree_distances, lambda: [trees()]),
    "distances from": (f.distances_from, lambda: [S * numbers(T), numbers(S, S)]),
    "expected distances": (f.expected_distances, lambda: [numbers(T, S), numbers(S, S)]),
    "syntax-directed": (f.syntax_directed_attention, lambda: [numbers(S), 9 * numbers(S)]),
    "supervised gates": (supervised_log_gates, lambda: [numbers(T)]),
    "gap heights": (f.gap_heights, lambda: [trees(), starts()]),
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
