"""Metrics of the source positions that a decoder predicts for its attention (SDAtt Eq. 5)."""

from typing import Any

import torch
from fairseq.logging import metrics
from torch import Tensor

from .terms.term import log_sums, wide_sum

#: The name under which the sums of positions over a batch are logged.
SUMS = "position_sums"


def position_sums(extra: dict[str, Any], sample: dict[str, Any], pad: int) -> dict[str, Tensor]:
    """Return a batch's sums over predicted source positions, from which metrics are computed.

    :func:`reduce_positions` computes the metrics. The sums are on the device.

    Empty if the model returned no ``positions``: p, ``(B, T)``, between 0 and J - 1. ``pad`` is the
    index of padding in the target.
    """
    if "positions" not in extra:
        return {}
    position, counted = extra["positions"], sample["target"].ne(pad)
    last = (sample["net_input"]["src_lengths"].unsqueeze(1) - 1).to(position)
    steps = counted.cumsum(1) - 1
    # Both relative to the sentence's length, centred: in long sentences, words are farther back in
    # source and target alike, and the model deserves no credit for that.
    x = position / last.clamp_min(1) - 0.5
    y = steps / steps[:, -1:].clamp_min(1) - 0.5
    saturated = (position - last / 2).abs() > last / 2 - 0.5
    numbers = torch.stack([torch.ones_like(x), saturated.to(x), x, y, x * x, y * y, x * y])
    return {SUMS: (numbers * counted).sum((1, 2))}


def reduce_positions(logs: list[dict[str, Any]]) -> None:
    """Log metrics of predicted source positions: share at the ends, correlation with the target.

    ``saturated_positions`` is the percentage of states whose p is less than half a token from
    either end of the source, where the sigmoid is flat. ``position_correlation`` is between the
    share of the source before p and the share of the target before the state. A model that
    translates word by word has about two saturated positions in a sentence; if nearly all are, the
    predictor is stuck.
    """
    if any(SUMS in log for log in logs):
        log_sums(logs, SUMS)
        metrics.log_derived("saturated_positions", _saturated)
        metrics.log_derived("position_correlation", _correlation)


def _saturated(meters: Any) -> Tensor:
    count, saturated, *_ = wide_sum(meters, SUMS)
    return (100 * saturated / count).round(decimals=1)


def _correlation(meters: Any) -> Tensor:
    sums = wide_sum(meters, SUMS)
    x, y, xx, yy, xy = sums[2:] / sums[0]
    spread = (xx - x * x) * (yy - y * y)  # not positive if nothing moves
    return ((xy - x * y) / torch.where(spread > 0, spread, torch.nan).sqrt()).round(decimals=3)
