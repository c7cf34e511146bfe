"""The losses and accuracies that ``fairseq-train`` logged."""

from dataclasses import dataclass
from pathlib import Path

from ...base.errors import DataError
from ...base.text import read_lines
from ...printed.training_log import read_fairseq_log


@dataclass(frozen=True)
class Point:
    """One logged number."""

    loss: str
    """Such as ``nll_loss``, ``src_dep_loss`` or ``src_uas``."""
    part: str
    """``train`` or ``valid``."""
    update: int
    value: float


def read_training_log(path: str | Path) -> list[Point]:
    """Read the losses and accuracies in a log of fairseq's format ``simple`` or ``json``.

    Raises:
        DataError: the log has no loss.
    """
    points = [
        Point(name, logged.kind.removesuffix("_inner"), int(logged.numbers["num_updates"]), value)
        for logged in read_fairseq_log(read_lines(path))
        if logged.kind in ("train_inner", "valid") and "num_updates" in logged.numbers
        for name, value in logged.numbers.items()
        if name.endswith(("loss", "_uas")) and not name.startswith("best")
    ]
    if not points:
        raise DataError(
            f"{path}: no loss was logged here; give what fairseq-train --log-format simple (or "
            "json) --log-interval 100 printed"
        )
    return points
