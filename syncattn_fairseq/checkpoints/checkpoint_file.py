"""Read checkpoints with checks, and write checkpoints atomically."""

import zipfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..base.errors import DataError, naming, shorten
from ..base.files import open_file, replacing
from .classes import list_classes
from .option_checks import check_stored_options, list_options

#: The name of the checkpoint that fairseq resumes from.
LAST = "checkpoint_last.pt"
#: The types of numbers that a model may have.
_TYPES = {
    *(torch.float16, torch.float32, torch.float64, torch.bfloat16, torch.bool),
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
}


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read and check a fairseq checkpoint; the tensors are memory-mapped.

    Raises:
        DataError: the file is damaged or no fairseq checkpoint, or its options are unsafe.
    """
    torch.serialization.add_safe_globals(list_classes())
    return load_checkpoint(
        path, lambda: torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    )


def read_options(path: str | Path, section: str) -> dict[str, Any]:
    """Return a group of a checkpoint's options, unchecked; empty if the file is no checkpoint."""
    try:
        return list_options(list_options(_read_small_parts(path)["cfg"]).get(section))
    except Exception:  # whoever loads it says what is wrong
        return {}


def read_task_state(path: str | Path) -> Any:
    """Return the task's state in a checkpoint, unchecked; None if the file is no checkpoint."""
    try:
        return _read_small_parts(path)["task_state"] or {}
    except Exception:  # whoever loads it says what is wrong
        return None


def _read_small_parts(path: str | Path) -> dict[str, Any]:
    written = Path(path).stat()
    return _read_as_written(path, written.st_mtime_ns, written.st_size)


@lru_cache(maxsize=8)
def _read_as_written(path: str | Path, *_written: int) -> dict[str, Any]:
    """Read options and task state of a checkpoint, cached until the file is written again."""
    open_file(path).close()
    state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    return {name: state.get(name) for name in ("cfg", "task_state")}


def load_checkpoint(path: Path | str, read: Callable[[], Any]) -> dict[str, Any]:
    """Load a checkpoint by calling ``read``; check the file before, and contents and options after.

    Args:
        path: the file.
        read: loads and returns the contents.

    Raises:
        DataError: the file is damaged or no fairseq checkpoint, or its options are unsafe.
    """
    open_file(path).close()  # or it says that it is no file; it would be read without an end
    with naming(path):
        try:
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    damaged = archive.testzip()  # PyTorch compares no checksums
                if damaged is not None:
                    raise DataError(f"the archive is damaged at {damaged}; use another checkpoint")
            state: dict[str, Any] = read()
            _check(state)
        except (DataError, OSError, MemoryError):
            raise
        except Exception as error:  # garbage can raise anything
            raise DataError(
                f"PyTorch cannot load the file ({type(error).__name__}): it is damaged, or not a "
                "checkpoint; give a fairseq checkpoint"
            ) from error
    return state


def _check(state: Any) -> None:
    """Raise `DataError` if a loaded object is not a usable fairseq checkpoint."""
    if not _has_history(state):
        raise DataError("lacks the model or the optimizer history; give a fairseq checkpoint")
    for name, tensor in state["model"].items():
        if not isinstance(tensor, Tensor):
            raise DataError(
                f"the parameter {shorten(name)} is {type(tensor).__name__}, not a tensor; give a "
                "fairseq checkpoint"
            )
        if not _is_plain(tensor):
            raise DataError(
                f"the parameter {shorten(name)} is a tensor of {tensor.dtype} ({tensor.layout}, "
                f"{tensor.device.type}), not of plain numbers; give a checkpoint as fairseq "
                "writes it"
            )
        if tensor.is_floating_point() and tensor.isnan().any():
            raise DataError(f"the parameter {shorten(name)} contains NaN; use another checkpoint")
    check_stored_options(state)


def _is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor stores all numbers, in a type with arithmetic."""
    return (
        tensor.dtype in _TYPES
        and tensor.layout == torch.strided
        and not tensor.is_nested
        and not tensor.is_meta
    )


def _has_history(state: Any) -> bool:
    try:
        model, updates = state["model"], state["optimizer_history"][-1]["num_updates"]
        named = isinstance(model, dict) and all(isinstance(name, str) for name in model)
        return named and type(updates) is int and updates >= 0
    except (KeyError, TypeError, IndexError):
        return False


def save_checkpoint(state: Any, path: Path | str, follow: bool = True) -> None:
    """Write a checkpoint to a file, whole or not at all; `DataError` if the disk is full.

    Args:
        state: the contents of the checkpoint.
        path: the file.
        follow: if the path is a link, write the file that it points to, in place of the link.
    """
    # As a file: PyTorch would put the temporary name into what it writes.
    with replacing(Path(path), follow) as temporary, temporary.open("wb") as file:
        torch.save(state, file)
