"""Watches the source positions that a model predicts (SDAtt Eq. 5): do they follow the target?"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.logging import metrics
from torch import Tensor

#: Under which the sums of a batch are logged.
SUMS = "position_sums"


def position_sums(extra: dict[str, Any], sample: dict[str, Any], pad: int) -> dict[str, Tensor]:
    """Return what :func:`reduce_positions` needs of a batch, on the device.

    It is nothing where no positions are predicted.

    Args:
        extra: what the model returned; ``positions``, p, ``(B, T)``, between 0 and J - 1.
        sample: the batch.
        pad: index of padding in the target.
    """
    if "positions" not in extra:
        return {}
    position, counted = extra["positions"], sample["target"].ne(pad)
    last = (sample["net_input"]["src_lengths"].unsqueeze(1) - 1).to(position)
    steps = counted.cumsum(1) - 1
    # Both as parts of their sentence, about its middle: words of long sentences stand farther back
    # in source and target alike, and that is no merit of the model.
    x = position / last.clamp_min(1) - 0.5
    y = steps / steps[:, -1:].clamp_min(1) - 0.5
    saturated = (position - last / 2).abs() > last / 2 - 0.5
    numbers = torch.stack([torch.ones_like(x), saturated.to(x), x, y, x * x, y * y, x * y])
    return {SUMS: (numbers * counted).sum((1, 2))}


def reduce_positions(logs: list[dict[str, Any]]) -> None:
    """Hand to fairseq what the batches logged, over all workers.

    Logged are ``saturated_positions``, the percentage of states that expect the first or the last
    token, less than half a token from the end, where the sigmoid is flat; and
    ``position_correlation`` of the part of the source before p with the part of the target before
    the state. Of a model that translates word by word about two positions in a sentence are
    saturated; if nearly all are, the predictor is stuck.
    """
    if any(SUMS in log for log in logs):
        metrics.log_scalar_sum(f"_{SUMS}", sum(log.get(SUMS, 0) for log in logs))
        metrics.log_derived("saturated_positions", _saturated)
        metrics.log_derived("position_correlation", _correlation)


def _saturated(meters: Any) -> float:
    count, saturated, *_ = meters[f"_{SUMS}"].sum.tolist()
    return round(100 * saturated / count, 1)


def _correlation(meters: Any) -> float:
    count, _, *sums = meters[f"_{SUMS}"].sum.tolist()
    x, y, xx, yy, xy = (total / count for total in sums)
    spread = (xx - x * x) * (yy - y * y)
    return round((xy - x * y) / spread**0.5, 3) if spread > 0 else float("nan")
