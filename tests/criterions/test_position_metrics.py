from typing import Any

import pytest
import torch
from fairseq.logging import metrics
from hypothesis import given
from hypothesis import strategies as st

from syncattn_fairseq.criterions.position_metrics import position_sums, reduce_positions
from tests.criterions.test_criterion import batch, criterion
from tests.models import build

PAD = build.PAD


def logged(*logs: dict[str, Any]) -> dict[str, float]:
    with metrics.aggregate(new_root=True) as meters:
        reduce_positions(list(logs))
    return dict(meters.get_smoothed_values())


def log_of(
    positions: list[list[float]], source: list[int], target: list[int]
) -> dict[str, torch.Tensor]:
    rows = [[5] * n + [PAD] * (max(target) - n) for n in target]
    sample = {"target": torch.tensor(rows), "net_input": {"src_lengths": torch.tensor(source)}}
    return position_sums({"positions": torch.tensor(positions)}, sample, PAD)


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_they_equal_the_loop_over_words(seed, B, S, T):
    torch.manual_seed(seed)
    source, target = torch.randint(2, S + 2, (B,)), torch.randint(2, T + 2, (B,))
    positions = torch.rand(B, int(target.max())).double() * (source.unsqueeze(1) - 1)
    log = log_of(positions.tolist(), source.tolist(), target.tolist())
    pairs, ends = [], 0
    for b in range(B):
        for t in range(int(target[b])):
            p, last = positions[b, t].item(), source[b].item() - 1
            pairs.append((p / last, t / (target[b].item() - 1)))
            ends += min(p, last - p) < 0.5
    values = logged(log)
    assert values["saturated_positions"] == pytest.approx(100 * ends / len(pairs), abs=0.06)
    correlation = torch.corrcoef(torch.tensor(pairs, dtype=torch.float64).T)[0, 1].item()
    assert values["position_correlation"] == pytest.approx(correlation, abs=2e-3)


def test_batches_are_counted_together():
    first, second = log_of([[0.1, 2]], [4], [2]), log_of([[0.1, 1.0, 1.9]], [3], [3])
    assert logged(first)["saturated_positions"] == 50
    assert logged(first, second, {})["saturated_positions"] == 60
    assert logged(second)["position_correlation"] == 1


def test_empty_sentences_are_counted():
    values = logged(log_of([[0.0, 0, 0], [0.1, 1.0, 1.9]], [1, 3], [1, 3]))
    assert values["saturated_positions"] == 75
    assert values["position_correlation"] == values["position_correlation"], "a number"


def test_a_predictor_that_is_stuck_shows():
    values = logged(log_of([[0.0, 0, 0], [0, 0, 9]], [9, 5], [3, 2]))
    assert values["saturated_positions"] == 100
    assert values["position_correlation"] != values["position_correlation"], "it does not move"


def test_nothing_is_logged_where_no_position_is_predicted():
    assert logged({"loss": 1}) == {}
    assert position_sums({"attn": []}, {}, PAD) == {}


@pytest.mark.parametrize(
    ("arch", "options", "predicts"),
    [
        ("rnn_local_double", {}, True),
        ("rnn_syntax_directed", {}, True),
        ("rnn_syntax_directed", {"tree_position": "expected"}, False),
        ("rnn_global", {}, False),
        ("syntax_transformer_tiny", {"cross_attention_tree_window": 3}, True),
    ],
)
def test_the_criterion_logs_them(arch, options, predicts):
    _, _, log = criterion()(build.model(arch, **options), batch())
    with metrics.aggregate(new_root=True) as meters:
        criterion().reduce_metrics([log])
    assert ("saturated_positions" in meters.get_smoothed_values()) == predicts
