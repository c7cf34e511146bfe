"""Write checkpoints atomically, and resume from an intact checkpoint.

Faults: all versions write a checkpoint and copy it byte by byte to ``checkpoint_last.pt``: a
training that is killed meanwhile cannot be resumed. If that is a link to another model, they write
over that model. On a full disk they try three times to write, and never name the file.
Test: ``test_whole_checkpoints.py``, and ``scripts/kill_test.py``.
"""

import logging
import os
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..base.errors import DataError
from ..base.files import replacing
from ..base.locks import lock
from ..checkpoints.checkpoint_file import LAST, load_checkpoint, save_checkpoint
from ..data.preparation import copy_record
from .wrapping import wrap

_NAME = re.compile(r"checkpoint(\d+|_\d+_\d+|_best|_last|\.best_.+)\.pt")
_TEMPORARY = re.compile(r"\." + _NAME.pattern + r"\.[0-9a-f]+\.tmp")

logger = logging.getLogger(__name__)


def mend() -> None:
    """Make fairseq write checkpoints atomically, and resume from the newest intact checkpoint.

    If ``checkpoint_last.pt`` is damaged, training resumes from the newest intact checkpoint beside
    it, with a warning. Every error while loading names the file. `RuntimeError`: other patches,
    which would be lost, already wrap what writes checkpoints.
    """
    from fairseq import checkpoint_utils
    from fairseq.file_io import PathManager

    if hasattr(checkpoint_utils.torch_persistent_save, "__wrapped__"):
        raise RuntimeError("mend() comes before what wraps torch_persistent_save")
    wrap(PathManager, "copy")(_copy_whole)
    wrap(checkpoint_utils, "torch_persistent_save")(_save_whole)
    wrap(checkpoint_utils, "load_checkpoint_to_cpu")(_load_whole)
    wrap(checkpoint_utils, "load_checkpoint")(_resume_from_newest)


def _copy_whole(copy: Any, src_path: str, dst_path: str, overwrite: bool = False) -> Any:
    """Copy a file atomically, in place of fairseq's copy."""
    if not _is_local(dst_path):
        return copy(src_path, dst_path, overwrite)
    with replacing(Path(dst_path), follow=False) as temporary:
        shutil.copyfile(src_path, temporary)
    return True


def _save_whole(save: Any, obj: Any, filename: str, async_write: bool = False) -> Any:
    """Write a checkpoint atomically."""
    if async_write or not _is_local(filename):
        return save(obj, filename, async_write)
    return save_checkpoint(obj, filename, follow=False)


def _is_local(path: str) -> bool:
    """Return whether a path is a local file, safe to rename."""
    from fairseq.file_io import PathManager

    return PathManager.supports_rename(path)


def _load_whole(load: Any, path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Load an undamaged checkpoint; every error names the file."""
    return load_checkpoint(path, lambda: load(path, *args, **kwargs))


def _resume_from_newest(resume: Any, cfg: Any, trainer: Any, **kwargs: Any) -> Any:
    """Resume a training, from the newest intact checkpoint if the last one is damaged.

    The folder that it saves into is claimed and tidied, and gets the record of how its text was
    prepared.
    """
    if trainer.data_parallel_rank > 0 or cfg.no_save:
        return _resume(resume, cfg, trainer, **kwargs)
    folder = Path(cfg.save_dir)
    _claim(folder)
    _remove_leftovers(folder)
    is_new = not (folder / LAST).exists()
    start = Path(cfg.finetune_from_model or ".")
    if is_new and start.parent.resolve() == folder.resolve() and _NAME.fullmatch(start.name):
        raise DataError(
            f"--finetune-from-model {start}: this training would overwrite that checkpoint; "
            "choose another --save-dir"
        )
    resumed = _resume(resume, cfg, trainer, **kwargs)
    # Not before the checkpoint is known to be of this data.
    _store_record(folder, getattr(trainer.task, "cfg", None), is_new)
    return resumed


def _resume(resume: Any, cfg: Any, trainer: Any, **kwargs: Any) -> Any:
    from fairseq import checkpoint_utils

    if cfg.restore_file != LAST or trainer.checkpoint_suffix:
        return resume(cfg, trainer, **kwargs)
    load = checkpoint_utils.load_checkpoint_to_cpu
    checkpoint_utils.load_checkpoint_to_cpu = partial(_load_newest, load)
    try:
        return resume(cfg, trainer, **kwargs)
    finally:
        checkpoint_utils.load_checkpoint_to_cpu = load


def _load_newest(load: Any, path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Load the last checkpoint of a folder, or the newest intact checkpoint."""
    try:
        return load(path, *args, **kwargs)
    except DataError as error:
        if Path(path).name != LAST:
            raise
        for other in find_intact(Path(path).parent):
            try:
                state = load(str(other), *args, **kwargs)
            except DataError:
                continue
            logger.warning(f"{error}; training continues from {other} instead")
            return state
        raise


def _store_record(folder: Path, settings: Any, is_new: bool) -> None:
    """Store beside the checkpoints how the text of a task was prepared."""
    from fairseq.utils import split_paths

    if data := getattr(settings, "data", None):
        sides = (getattr(settings, f"{side}_lang", None) for side in ("source", "target"))
        copy_record(Path(split_paths(data)[0]), folder, [*filter(None, sides)], is_new)


def find_intact(folder: Path) -> Iterator[Path]:
    """Yield a folder's readable checkpoints that have an optimizer state, newest first.

    Their contents are not verified yet; `load_checkpoint` does that.
    """
    numbered = []
    for path in folder.iterdir():
        if _NAME.fullmatch(path.name) and path.is_file():
            try:
                state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
                if state["last_optimizer_state"] is not None:
                    numbered.append((state["optimizer_history"][-1]["num_updates"], path))
            except Exception:  # damaged
                continue
    return (path for _, path in sorted(numbered, reverse=True))


#: Folders into which this process trains. They stay locked until it ends, however it does.
_claimed: dict[Path, int] = {}


def _claim(folder: Path) -> None:
    """Keep other trainings out of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.resolve()
    if path not in _claimed:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        lock(
            descriptor,
            f"{folder}: another training saves its checkpoints in this folder; wait for that "
            "training, or choose another --save-dir",
        )
        _claimed[path] = descriptor


def _remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of a killed training."""
    for path in folder.glob(".checkpoint*.tmp"):
        if _TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)
