"""Average checkpoints."""

import re
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from ..base.errors import DataError
from ..data.fingerprint import check_same_training
from .checkpoint_file import read_checkpoint, save_checkpoint

_NAMES = {
    "epoch": re.compile(r"checkpoint(\d+)\.pt"),
    "update": re.compile(r"checkpoint_\d+_(\d+)\.pt"),
}


def find_last_checkpoints(folder: str | Path, number: int, by: str = "epoch") -> list[Path]:
    """Find the newest checkpoints of a folder, oldest first; `DataError` if there are fewer.

    By ``epoch``, these are each epoch's, ``checkpointE.pt``; by ``update``, those of
    ``--save-interval-updates``, ``checkpoint_E_U.pt``.
    """
    paths = {
        kind: sorted(
            (int(match[1]), path)
            for path in Path(folder).iterdir()
            if (match := pattern.fullmatch(path.name))
        )
        for kind, pattern in _NAMES.items()
    }
    if len(paths[by]) < number:
        enough = [f"; --by {kind} has {len(p)}" for kind, p in paths.items() if len(p) >= number]
        raise DataError(
            f"{folder}: {len(paths[by])} checkpoints by {by}, too few to average {number}"
            + "".join(enough)
        )
    return [path for _, path in paths[by][-number:]]


def average_checkpoints(paths: Sequence[str | Path], output: str | Path) -> list[int]:
    """Average the models of checkpoints into one to decode with; return each one's updates.

    Means are computed in float64 and stored in the type of the newest checkpoint, the one with
    the most updates. Everything else comes from that checkpoint: integer buffers, configuration
    and training history. The optimizer state is left out: it belongs to other parameters.
    `DataError`: a file is not a checkpoint, or the models differ.
    """
    # The optimizer states, two thirds of the files, are never touched.
    states = [read_checkpoint(path) for path in paths]
    updates = [state["optimizer_history"][-1]["num_updates"] for state in states]
    newest = states[updates.index(max(updates))]
    models = [state["model"] for state in states]
    for path, model in zip(paths[1:], models[1:], strict=True):
        _check_same_parameters(models[0], model, f"{path} and {paths[0]}")
    check_same_training(paths, states)

    means: OrderedDict[str, Tensor] = OrderedDict()
    shared: dict[Any, Tensor] = {}  # tied parameters stay one tensor, which keeps the file small
    for key, value in tqdm(newest["model"].items(), desc="average", unit=" tensors", leave=False):
        memory = (value.data_ptr(), value.dtype, value.shape, value.stride())
        if memory not in shared:
            shared[memory] = _average([model[key] for model in models], value)
        means[key] = shared[memory]
    newest["model"] = means
    newest.pop("last_optimizer_state", None)
    save_checkpoint(newest, output)
    return updates


def _average(values: Sequence[Tensor], newest: Tensor) -> Tensor:
    if not newest.is_floating_point():
        return newest
    total = torch.zeros_like(newest, dtype=torch.float64)
    for value in values:
        total += value
    return (total / len(values)).to(newest.dtype)


def _check_same_parameters(one: dict[str, Tensor], other: dict[str, Tensor], where: str) -> None:
    for key in [*one, *other]:
        shapes = [tuple(model[key].shape) if key in model else None for model in (other, one)]
        if shapes[0] != shapes[1]:
            raise DataError(f"{where}: not the same model, {key} is {shapes[0]} and {shapes[1]}")
