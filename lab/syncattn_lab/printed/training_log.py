"""Read the numbers of fairseq's training logs, in its formats ``simple`` and ``json``."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncattn_fairseq.base.errors import DataError
from syncattn_fairseq.base.text import read_lines

_LINE = re.compile(  # of fairseq-train, or of fairseq-hydra-train
    r"(?:\| |\[)(train_inner|train|valid|test)(?: \| |\]\[INFO\] - )(.*)"
)
_NUMBER = re.compile(r"(\w+)[= ](-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?=[,\s]|$)")
#: No loss, time or count comes near to it; a larger number is none that fairseq logged.
_LARGEST = 1e15


@dataclass(frozen=True)
class Logged:
    """The numbers in one line of a training log."""

    kind: str
    """Which kind of line it is, by fairseq's name.

    ``train_inner`` comes every ``--log-interval`` updates, ``train`` once per epoch, ``valid`` once
    per validation, and ``test`` from ``fairseq-validate --valid-subset test``.
    """
    numbers: Mapping[str, float]
    """Values by name, such as ``loss``, ``num_updates`` and ``train_wall``; all are finite."""


def read_fairseq_log(lines: Iterable[str]) -> Iterator[Logged]:
    """Yield the numbers of each line of a log; skip lines without numbers."""
    for line in lines:
        if match := _LINE.search(line):
            kind, text = match.groups()
            pairs = _read_json(kind, text) if text.startswith("{") else _NUMBER.findall(text)
            numbers = {}
            for name, value in pairs:
                with suppress(TypeError, ValueError, OverflowError):  # null, text, or too large
                    if abs(number := float(value)) < _LARGEST and name.isprintable():
                        numbers[name] = number
            if numbers:
                yield Logged(kind, numbers)


def _read_json(kind: str, text: str) -> list[tuple[str, Any]]:
    try:
        pairs: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):  # a line that was cut off, or is nested too deeply
        return []
    # At the end of an epoch, fairseq puts the kind before each name.
    return [(name.removeprefix(f"{kind}_"), value) for name, value in pairs.items()]


@dataclass(frozen=True)
class Point:
    """A loss or an accuracy that was logged at an update."""

    loss: str
    """The name of the loss or accuracy, such as ``nll_loss``, ``src_dep_loss`` or ``src_uas``."""
    part: str
    """Which text it is of, ``train`` or ``valid``."""
    update: int
    value: float


def read_training_log(path: str | Path) -> list[Point]:
    """Read the losses and accuracies of a training log; raise `DataError` if it has no loss."""
    points = [
        Point(name, logged.kind.removesuffix("_inner"), int(logged.numbers["num_updates"]), value)
        for logged in read_fairseq_log(read_lines(path))
        if logged.kind in ("train_inner", "valid") and "num_updates" in logged.numbers
        for name, value in logged.numbers.items()
        if name.endswith(("loss", "_uas")) and not name.startswith("best")
    ]
    if not points:
        raise DataError(
            f"{path}: the log has no losses; give the output of fairseq-train --log-format "
            "simple (or json) --log-interval 100"
        )
    return points
