"""Average the parameters of the checkpoints of one training."""

import re
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from ..base.errors import DataError
from ..data.fingerprint import check_same_meaning
from .checkpoint_file import read_checkpoint, save_checkpoint
from .option_checks import list_options
from .registered_options import list_options as list_registered

_NAMES = {
    "epoch": re.compile(r"checkpoint(\d+)\.pt"),
    "update": re.compile(r"checkpoint_\d+_(\d+)\.pt"),
}


#: A pattern of the model options that may change within a training.
_OF_TRAINING = re.compile("drop|_path$|noise|activations")
#: The options, by group, that all checkpoints of a training share; empty: all of the group.
_SETTINGS: dict[str, tuple[str, ...]] = {
    "common": ("seed",),
    "criterion": (),
    "optimizer": (),
    "lr_scheduler": (),
}


def find_last_checkpoints(folder: str | Path, number: int, by: str = "epoch") -> list[Path]:
    """Return the paths of the ``number`` newest checkpoints of a folder, oldest first.

    By ``epoch``, these are each epoch's, ``checkpointE.pt``; by ``update``, those of
    ``--save-interval-updates``, ``checkpoint_E_U.pt``. `DataError`: there are fewer.
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
        enough = [
            (f"; for --by {kind} the folder has {len(p)}")
            for kind, p in paths.items()
            if len(p) >= number
        ]
        raise DataError(
            f"{folder}: has {len(paths[by])} checkpoints of the kind --by {by}, but {number} are "
            "to be averaged" + "".join(enough)
        )
    return [path for _, path in paths[by][-number:]]


def average_checkpoints(paths: Sequence[str | Path], output: str | Path) -> list[int]:
    """Average the parameters of checkpoints; return the number of updates of each checkpoint.

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
    check_same_meaning(paths, states)
    for path, state in zip(paths[1:], states[1:], strict=True):
        _check_same_training(states[0], state, f"{path} and {paths[0]}")

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
            raise DataError(
                f"{where}: the checkpoints are not of the same model: parameter {key} has the "
                f"shape {shapes[0]} in one and {shapes[1]} in the other (None: no such parameter)"
            )


def _check_same_training(one: dict[str, Any], other: dict[str, Any], where: str) -> None:
    """Check that two checkpoints come from the same training or the same initial model.

    The parameters of other checkpoints have nothing in common, and their means are no model.

    Raises:
        DataError: the checkpoints come from two trainings or models.
    """
    first, second = (_list_sections(state) for state in (one, other))
    # Beside a model's own options, fairseq stores those of all that a command has.
    known = {"arch"} | list_registered("model", str(first["model"].get("arch")))
    for name in sorted(known & first["model"].keys() & second["model"].keys()):
        values = first["model"][name], second["model"][name]
        if values[0] != values[1] and not _OF_TRAINING.search(name):
            raise DataError(
                f"{where}: the checkpoints are not of the same model: {name} is {values[1]} in "
                f"one and {values[0]} in the other"
            )
    checkpoints = first["checkpoint"], second["checkpoint"]
    folders = {str(each.get("save_dir")) for each in checkpoints}
    if len(folders) == 1 or any(each.get("finetune_from_model") for each in checkpoints):
        return
    for section, names in _SETTINGS.items():
        for name in sorted(first[section].keys() & second[section].keys()):
            values = first[section][name], second[section][name]
            if values[0] != values[1] and (not names or name in names):
                raise DataError(
                    f"{where}: the checkpoints are from two trainings: {section}.{name} is "
                    f"{values[1]} in one and {values[0]} in the other; average checkpoints of "
                    "the same training"
                )


def _list_sections(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    options = list_options(state.get("cfg") or {})
    names = ("model", "checkpoint", *_SETTINGS)
    return {name: list_options(options.get(name) or {}) for name in names}
