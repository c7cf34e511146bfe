"""Resume a training on its own data.

Fault: all versions go on with dictionaries in another order, or in the midst of another text, and
say nothing.
Test: ``test_resumed_data.py``.
"""

from pathlib import Path
from typing import Any

from ..data.fingerprint import Fingerprint, check_resumed, find_fingerprint
from .wrapping import wrap


def mend() -> None:
    """Make fairseq check that a resumed training has the data its checkpoint was trained on."""
    from fairseq import checkpoint_utils
    from fairseq.trainer import Trainer

    @wrap(Trainer, "load_checkpoint")
    def load_for_data(load: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        read = checkpoint_utils.load_checkpoint_to_cpu

        def read_and_compare(path: str, *rest: Any, **options: Any) -> Any:
            state = read(path, *rest, **options)
            _compare(path, state, self)
            return state

        checkpoint_utils.load_checkpoint_to_cpu = read_and_compare
        try:
            return load(self, *args, **kwargs)
        finally:
            checkpoint_utils.load_checkpoint_to_cpu = read


def _compare(path: str, state: Any, trainer: Any) -> None:
    """Compare a checkpoint's data with the training's data, if the task has a fingerprint."""
    from fairseq.utils import split_paths

    task, settings = trainer.task, trainer.cfg.checkpoint
    here = getattr(task, "fingerprint", None)
    if isinstance(here, Fingerprint):
        goes_on = path != settings.finetune_from_model and not settings.reset_dataloader
        before = find_fingerprint(path, state)
        folders = [*map(Path, split_paths(task.cfg.data))]
        check_resumed(path, before, here, folders, (task.cfg.train_subset, "valid"), goes_on)
