"""Build the model of a checkpoint: whatever is wrong with the file is one line that names it."""

from __future__ import annotations

import copy
import functools
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .base.errors import DataError
from .checkpoint_options import require_architecture

#: The largest number of positions that a model may have.
_POSITIONS = 1_000_000

_MISMATCH = re.compile(
    r"size mismatch for (\S+): copying a param with shape torch\.Size\(\[([\d, ]*)\]\) from "
    r"checkpoint, the shape in current model is torch\.Size\(\[([\d, ]*)\]\)"
)


def build(task: Any, options: Namespace, weights: Mapping[str, Any]) -> Any:
    """Build the model that a checkpoint's options describe, and give it the weights.

    First, only a sketch is built, which takes no memory: the options may ask for any size.

    Args:
        task: fairseq's, with the dictionaries.
        options: a checkpoint's; they may change.
        weights: the checkpoint's.

    Raises:
        DataError: options and weights do not go together.
        Exception: anything, if the options make no sense; use it within `naming_checkpoint`.
    """
    for name, value in vars(options).items():
        if not isinstance(value, int):
            continue
        if name.endswith("layers") and value > len(weights):
            raise DataError(f"its option {name} is {value}, but it has {len(weights)} tensors")
        if name.endswith("positions") and value > _POSITIONS:
            raise DataError(f"its option {name} is {value}, more than {_POSITIONS}")
    for name, shape in _sketch(task, options).items():
        if name in weights and weights[name].shape != shape:
            where = f"in {task.cfg.data}"
            raise DataError(_describe(name, [*weights[name].shape], [*shape], where))
    model = task.build_model(options)
    model.load_state_dict(dict(weights), strict=True, model_cfg=options)
    return model


def _sketch(task: Any, options: Namespace) -> dict[str, torch.Size]:
    """Return the shapes of a model's weights; none if a plugin's part cannot be sketched."""
    try:
        with torch.device("meta"), _Sketching():
            sketch = task.build_model(copy.deepcopy(options))
    except (NotImplementedError, RuntimeError) as error:
        if "meta" not in str(error):
            raise
        return {}
    return {name: tensor.shape for name, tensor in sketch.state_dict().items()}


class _Sketching(TorchFunctionMode):
    """Leaves out random initialisation, for which PyTorch would import its compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.normal_:
            return args[0]
        return func(*args, **(kwargs or {}))


@contextmanager
def naming_checkpoint(*paths: object) -> Iterator[None]:
    """Turn all errors of building a model into one line that names its checkpoint.

    Args:
        paths: the checkpoint; several if it is an ensemble.

    Raises:
        DataError: the model cannot be built.
    """
    where = ":".join(map(str, paths))
    try:
        yield
    except (DataError, OSError) as error:
        named = any(str(error).startswith(f"{path}: ") for path in paths)
        raise DataError(str(error) if named else f"{where}: {error}") from None
    except Exception as error:  # impossible options can raise anything
        raise DataError(f"{where}: {explain(error)}") from error


def explain(error: BaseException) -> str:
    """Say in one line why a model cannot be built from a checkpoint, or take its weights."""
    if found := _MISMATCH.search(str(error)):
        name, stored, here = found.groups()
        return _describe(name, _numbers(stored), _numbers(here))
    lines = str(error).strip().splitlines()
    reason = f": {lines[-1].strip()[:200]}" if lines else ""
    return (
        f"its options and weights do not go together here ({type(error).__name__}{reason}); it is "
        "damaged, or from another version"
    )


def _numbers(shape: str) -> list[int]:
    return [int(size) for size in shape.split(",") if size]


def _describe(name: str, stored: list[int], here: list[int], where: str = "here") -> str:
    """Describe a difference of shapes."""
    side = "source" if name.startswith("encoder") else "target"
    embeddings = name.endswith(("embed_tokens.weight", "output_projection.weight"))
    if embeddings and len(stored) == len(here) == 2 and stored[1] == here[1]:
        return (
            f"was trained with another dictionary, of {stored[0]} {side} subwords; the one {where} "
            f"has {here[0]}; use the data of its training"
        )
    return f"is another model: {name} is {stored} there, and {here} here"


def build_from_checkpoints_in_one_line() -> None:
    """Make fairseq's commands name the checkpoint, in one line, if they cannot build its model."""
    from fairseq import checkpoint_utils, models

    build_model = models.build_model
    ensemble = checkpoint_utils.load_model_ensemble_and_task

    @functools.wraps(build_model)
    def build_known(cfg: Any, *args: Any, **kwargs: Any) -> Any:
        require_architecture(cfg)
        return build_model(cfg, *args, **kwargs)

    @functools.wraps(ensemble)
    def load_ensemble(filenames: Any, *args: Any, **kwargs: Any) -> Any:
        with naming_checkpoint(*filenames):
            return ensemble(filenames, *args, **kwargs)

    models.build_model = build_known
    checkpoint_utils.load_model_ensemble_and_task = load_ensemble
