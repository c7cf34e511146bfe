"""The losses that ``fairseq-train`` logged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import DataError
from ..base.files import read_lines

_LINE = re.compile(  # of fairseq-train, or of fairseq-hydra-train
    r"(?:\| |\[)(train_inner|valid)(?: \| |\]\[INFO\] - )(.*)"
)
_NUMBER = re.compile(r"(\w+)[= ](-?[\d.]+(?:e-?\d+)?)(?=[,\s]|$)")


@dataclass(frozen=True)
class Point:
    """One logged number."""

    loss: str
    """Such as ``nll_loss`` or ``src_dep_loss``."""
    part: str
    """``train`` or ``valid``."""
    update: int
    value: float


def read_training_log(path: str | Path) -> list[Point]:
    """Read every loss of a log in fairseq's format ``simple`` or ``json``, by updates.

    Raises:
        DataError: the log has no loss.
    """
    points = [point for line in read_lines(path) for point in _points(line)]
    if not points:
        raise DataError(
            f"{path}: no loss was logged here; give what fairseq-train --log-format simple (or "
            "json) --log-interval 100 printed"
        )
    return points


def _points(line: str) -> Iterator[Point]:
    match = _LINE.search(line)
    if not match:
        return
    kind, text = match.groups()
    numbers = _json(text) if text.startswith("{") else dict(_NUMBER.findall(text))
    names = {name.removeprefix("valid_").removeprefix("train_"): name for name in numbers}
    update = numbers.get(names.get("num_updates", ""))
    if update is None:
        return
    for name, logged in names.items():
        if name.endswith("loss") and not name.startswith("best"):
            part = "valid" if kind == "valid" else "train"
            yield Point(name, part, int(float(update)), float(numbers[logged]))


def _json(text: str) -> dict[str, str]:
    try:
        return {name: str(value) for name, value in json.loads(text).items() if value is not None}
    except ValueError:
        return {}
