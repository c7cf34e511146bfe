"""Make fairseq's checkpoints survive a kill: it writes them whole, and resumes from a whole one.

fairseq itself writes a checkpoint and copies it byte by byte to ``checkpoint_last.pt``: a run that
is killed meanwhile cannot be resumed. On a full disk it tries to write three times, and never names
the file. It also does not store how many validations in a row ``--patience`` has counted, and it
stores a model's options in a way that PyTorch 2.6 refuses to load.
"""

from __future__ import annotations

import functools
import logging
import re
import shutil
import sys
import zipfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .base.errors import DataError, naming, shorten
from .base.files import replacing
from .building import explain
from .checkpoint_options import check_options

LAST = "checkpoint_last.pt"
_NAME = re.compile(r"checkpoint(\d+|_\d+_\d+|_best|_last|\.best_.+)\.pt")
_TEMPORARY = re.compile(r"\." + _NAME.pattern + r"\.[0-9a-f]+\.tmp")

logger = logging.getLogger(__name__)


def load_checkpoint(path: Path | str, read: Callable[[], Any]) -> dict[str, Any]:
    """Load a fairseq checkpoint; check that its bytes are as written, and its options harmless.

    Args:
        path: the file.
        read: loads it.

    Raises:
        DataError: the file is damaged, or not a checkpoint.
        OSError: the file cannot be read.
    """
    with naming(path):
        try:
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    damaged = archive.testzip()  # PyTorch compares no checksums
                if damaged is not None:
                    raise DataError(f"damaged at {damaged}; use another checkpoint")
            state: dict[str, Any] = read()
            _check(state)
        except (DataError, OSError, MemoryError):
            raise
        except Exception as error:  # garbage can raise anything
            raise DataError(
                f"PyTorch cannot load it ({type(error).__name__}); it is damaged, or not a "
                "checkpoint; give a fairseq checkpoint"
            ) from error
    return state


def _check(state: Any) -> None:
    """Raise `DataError` if this is no checkpoint, or one that cannot be used."""
    if not _has_history(state):
        raise DataError("holds no model with its history; give a fairseq checkpoint")
    for name, tensor in state["model"].items():
        if not isinstance(tensor, Tensor):
            raise DataError(f"{shorten(name)} is {type(tensor).__name__}, not numbers")
        if tensor.is_floating_point() and tensor.isnan().any():
            raise DataError(f"{shorten(name)} holds NaN; use another checkpoint")
    check_options(state)


def _has_history(state: Any) -> bool:
    try:
        return (
            isinstance(state["model"], dict) and state["optimizer_history"][-1]["num_updates"] >= 0
        )
    except (KeyError, TypeError, IndexError):
        return False


def save_checkpoint(state: Any, path: Path | str) -> None:
    """Write a checkpoint; it appears whole or not at all.

    Raises:
        DataError: the disk is full.
    """
    try:
        # As a file: PyTorch would put the temporary name into what it writes.
        with replacing(Path(path)) as temporary, temporary.open("wb") as file:
            torch.save(state, file)
    except RuntimeError as error:  # what PyTorch raises when a write fails
        raise DataError(f"{path}: cannot be written; is the disk full?") from error


def newest_intact(folder: Path) -> Iterator[Path]:
    """Yield the checkpoints of a folder that training can resume from, newest first.

    Their contents are not verified yet; `load_checkpoint` does that.
    """
    found = []
    for path in folder.iterdir():
        if _NAME.fullmatch(path.name) and path.is_file():
            try:
                state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
                if state["last_optimizer_state"] is not None:
                    found.append((state["optimizer_history"][-1]["num_updates"], path))
            except Exception:  # damaged
                continue
    return (path for _, path in sorted(found, reverse=True))


def keep_checkpoints_whole() -> None:
    """Make fairseq write checkpoints whole, and resume from the newest whole one.

    If ``checkpoint_last.pt`` is damaged, training resumes from the newest intact checkpoint beside
    it, with a warning. Every error while loading names the file. ``--patience`` goes on counting
    where it was.
    """
    from fairseq import checkpoint_utils, file_io

    copy = file_io.PathManager.copy
    persist = checkpoint_utils.torch_persistent_save
    load = checkpoint_utils.load_checkpoint_to_cpu
    resume = checkpoint_utils.load_checkpoint

    @functools.wraps(copy)
    def copy_whole(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        if not file_io.PathManager.supports_rename(dst_path):
            return copy(src_path, dst_path, overwrite)
        with replacing(Path(dst_path)) as temporary:
            shutil.copyfile(src_path, temporary)
        return True

    @functools.wraps(persist)
    def persist_whole(obj: Any, filename: str, async_write: bool = False) -> Any:
        _store_patience(obj)
        _store_plainly(obj)
        if async_write or not file_io.PathManager.supports_rename(filename):
            return persist(obj, filename, async_write)
        return save_checkpoint(obj, filename)

    @functools.wraps(load)
    def load_whole(path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return load_checkpoint(path, lambda: load(path, *args, **kwargs))

    def load_newest(path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return load_whole(path, *args, **kwargs)
        except DataError as error:
            if Path(path).name != LAST:
                raise
            for other in newest_intact(Path(path).parent):
                try:
                    state = load_whole(str(other), *args, **kwargs)
                except DataError:
                    continue
                logger.warning(f"{error}; training continues from {other} instead")
                return state
            raise

    @functools.wraps(resume)
    def resume_whole(cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        if cfg.restore_file != LAST or trainer.checkpoint_suffix:
            with _naming_resumed(cfg.restore_file):
                return resume(cfg, trainer, **kwargs)
        if trainer.data_parallel_rank == 0:
            _remove_leftovers(Path(cfg.save_dir))
        checkpoint_utils.load_checkpoint_to_cpu = load_newest
        try:
            with _naming_resumed(Path(cfg.save_dir) / LAST):
                found = resume(cfg, trainer, **kwargs)
        finally:
            checkpoint_utils.load_checkpoint_to_cpu = load_whole
        _restore_patience(None if cfg.reset_optimizer or cfg.reset_meters else found[0])
        _stop_if_complete(trainer, cfg.patience)
        return found

    file_io.PathManager.copy = staticmethod(copy_whole)
    checkpoint_utils.torch_persistent_save = persist_whole
    checkpoint_utils.load_checkpoint_to_cpu = load_whole
    checkpoint_utils.load_checkpoint = resume_whole


@contextmanager
def _naming_resumed(path: Path | str) -> Iterator[None]:
    """Turn fairseq's errors about the checkpoint of another training into one line.

    Args:
        path: the checkpoint; some of fairseq's errors name it themselves.
    """
    try:
        yield
    except Exception as error:
        text = str(error)
        if found := re.match("Cannot load model parameters from checkpoint (.*); please", text):
            remedy = "; choose another --save-dir" if Path(found[1]).name == LAST else ""
            raise DataError(f"{found[1]}: {explain(error.__context__ or error)}{remedy}") from error
        if "parameter group" in text:  # PyTorch's words for another optimizer state
            reason = "by the training of another model"
        elif found := re.match("(Criterion|Optimizer) does not match", text):
            reason = f"with another {found[1].lower()}"
        else:
            raise
        raise DataError(
            f"{path}: was saved {reason}; choose another --save-dir, or start from that model with "
            "--finetune-from-model"
        ) from error


def _store_patience(state: Any) -> None:
    """Add to a checkpoint what ``--patience`` compares the next validation with."""
    from fairseq_cli.train import should_stop_early as rule

    if hasattr(rule, "num_runs") and isinstance(state, dict) and "extra_state" in state:
        counted = {"best": float(rule.best), "num_runs": rule.num_runs}
        state["extra_state"]["patience"] = counted


def _store_plainly(state: Any) -> None:
    """Store a model's options as a table: PyTorch 2.6 loads a namespace only if a plugin allows it.

    So fairseq without this package can load the checkpoint of its own models.
    """
    cfg = state.get("cfg") if isinstance(state, dict) else None
    if isinstance(cfg, dict) and isinstance(cfg.get("model"), Namespace):
        cfg["model"] = vars(cfg["model"])


def _restore_patience(extra_state: Any) -> None:
    """Count on from a checkpoint; without one, forget what an earlier training here counted."""
    from fairseq_cli.train import should_stop_early as rule

    vars(rule).clear()
    vars(rule).update((extra_state or {}).get("patience") or {})


def _stop_if_complete(trainer: Any, patience: int) -> None:
    """End the program if the training has ended before: fairseq would make more updates."""
    from fairseq_cli.train import should_stop_early as rule

    wanted, made = trainer.cfg.optimization.max_update, trainer.get_num_updates()
    if wanted and made >= wanted:
        logger.info(f"the training is complete: it has {made} of {wanted} updates")
        sys.exit(0)
    without = getattr(rule, "num_runs", 0)
    if 0 < patience <= without:
        logger.info(f"the training is complete: {without} validations did not improve")
        sys.exit(0)


def _remove_leftovers(folder: Path) -> None:
    """Remove what a killed training was writing."""
    for path in folder.glob(".checkpoint*.tmp"):
        if _TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)
