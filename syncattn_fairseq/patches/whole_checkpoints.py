"""Write checkpoints whole, and resume from one that is whole.

Faults: all versions write a checkpoint and copy it byte by byte to ``checkpoint_last.pt``: a
training that is killed meanwhile cannot be resumed. On a full disk they try three times to write,
and never name the file.
Test: ``test_whole_checkpoints.py``, and ``scripts/kill_test.py``.
"""

import logging
import os
import re
import shutil
from collections.abc import Iterator
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
    """Make fairseq write checkpoints whole, and resume from the newest whole one.

    If ``checkpoint_last.pt`` is damaged, training resumes from the newest intact checkpoint beside
    it, with a warning. Every error while loading names the file. `RuntimeError`: other patches,
    which would be lost, already wrap what writes checkpoints.
    """
    from fairseq import checkpoint_utils, file_io
    from fairseq.utils import split_paths

    if hasattr(checkpoint_utils.torch_persistent_save, "__wrapped__"):
        raise RuntimeError("mend() comes before what wraps torch_persistent_save")

    @wrap(file_io.PathManager, "copy")
    def copy_whole(copy: Any, src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        if not file_io.PathManager.supports_rename(dst_path):
            return copy(src_path, dst_path, overwrite)
        with replacing(Path(dst_path)) as temporary:
            shutil.copyfile(src_path, temporary)
        return True

    @wrap(checkpoint_utils, "torch_persistent_save")
    def persist_whole(persist: Any, obj: Any, filename: str, async_write: bool = False) -> Any:
        if async_write or not file_io.PathManager.supports_rename(filename):
            return persist(obj, filename, async_write)
        return save_checkpoint(obj, filename)

    @wrap(checkpoint_utils, "load_checkpoint_to_cpu")
    def load_whole(load: Any, path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return load_checkpoint(path, lambda: load(path, *args, **kwargs))

    def load_newest(path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return load_whole(path, *args, **kwargs)
        except DataError as error:
            if Path(path).name != LAST:
                raise
            for other in find_intact(Path(path).parent):
                try:
                    state = load_whole(str(other), *args, **kwargs)
                except DataError:
                    continue
                logger.warning(f"{error}; training continues from {other} instead")
                return state
            raise

    @wrap(checkpoint_utils, "load_checkpoint")
    def resume_whole(resume: Any, cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        if trainer.data_parallel_rank == 0 and not cfg.no_save:
            _claim(Path(cfg.save_dir))
            _remove_leftovers(Path(cfg.save_dir))
            if data := getattr(getattr(trainer.task, "cfg", None), "data", None):
                copy_record(Path(split_paths(data)[0]), Path(cfg.save_dir))
        if cfg.restore_file != LAST or trainer.checkpoint_suffix:
            return resume(cfg, trainer, **kwargs)
        checkpoint_utils.load_checkpoint_to_cpu = load_newest
        try:
            return resume(cfg, trainer, **kwargs)
        finally:
            checkpoint_utils.load_checkpoint_to_cpu = load_whole


def find_intact(folder: Path) -> Iterator[Path]:
    """Yield the checkpoints of a folder that training can resume from, newest first.

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
        lock(descriptor, f"{folder}: another training saves there; wait for it, or use another")
        _claimed[path] = descriptor


def _remove_leftovers(folder: Path) -> None:
    """Remove what a killed training was writing."""
    for path in folder.glob(".checkpoint*.tmp"):
        if _TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)
