"""Report checkpoint loading errors in a single line with the file's name.

Fault: all versions print a traceback, or an assertion without the name of the file, when the
options, the weights or the training of a checkpoint do not go together with what is asked for.
Test: ``test_resuming.py``.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..base.errors import DataError
from ..checkpoints.building import explain, naming_checkpoint
from ..checkpoints.checkpoint_file import LAST
from ..checkpoints.option_checks import require_architecture
from .wrapping import wrap


def mend() -> None:
    """Make fairseq's commands name the checkpoint after a failure to load or resume."""
    from fairseq import checkpoint_utils, models

    @wrap(models, "build_model")
    def build_known(build: Any, cfg: Any, *args: Any, **kwargs: Any) -> Any:
        require_architecture(cfg)
        return build(cfg, *args, **kwargs)

    @wrap(checkpoint_utils, "load_model_ensemble_and_task")
    def load_ensemble(load: Any, filenames: Any, *args: Any, **kwargs: Any) -> Any:
        with naming_checkpoint(*filenames):
            return load(filenames, *args, **kwargs)

    @wrap(checkpoint_utils, "load_checkpoint")
    def resume_named(resume: Any, cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        own = cfg.restore_file == LAST and not trainer.checkpoint_suffix
        with _naming_resumed(Path(cfg.save_dir) / LAST if own else cfg.restore_file):
            return resume(cfg, trainer, **kwargs)


@contextmanager
def _naming_resumed(path: Path | str) -> Iterator[None]:
    """Turn fairseq's errors about the checkpoint of another training into one line."""
    try:
        yield
    except Exception as error:
        text = str(error)
        if match := re.match("Cannot load model parameters from checkpoint (.*); please", text):
            remedy = "; choose another --save-dir" if Path(match[1]).name == LAST else ""
            raise DataError(f"{match[1]}: {explain(error.__context__ or error)}{remedy}") from error
        if "dataloader mismatch" in text:
            raise DataError(
                f"{path}: the checkpoint is from further in an epoch than the text now has "
                "batches; use the data of the training, or start a new training from the model: "
                "--finetune-from-model, with another --save-dir"
            ) from error
        if "parameter group" in text:  # PyTorch's words for another optimizer state
            reason = "by the training of another model"
        elif match := re.match("(Criterion|Optimizer) does not match", text):
            reason = f"with another {match[1].lower()}"
        else:
            raise
        raise DataError(
            f"{path}: was saved {reason}; choose another --save-dir, or start a new training "
            "from the model with --finetune-from-model"
        ) from error
