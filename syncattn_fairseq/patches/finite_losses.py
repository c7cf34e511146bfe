"""Stop a training with non-finite losses or gradients, and name the culprit in a single line.

Faults: all versions check the gradients of each update. To find the module at fault they run the
update again, which fails on modules whose output is a dictionary. They do not check the losses, and
save the checkpoints of a training that has diverged.
Test: ``test_finite_losses.py``.
"""

import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ..base.errors import DataError
from .wrapping import wrap

_REMEDY = "lower --lr, warm up for longer, or set --clip-norm"

# In bits per token. The perplexity, two to this power, is infinite.
_INFINITE = 1024
_PER_TOKEN = ("valid nll_loss",)
_PER_TOKEN_OR_SENTENCE = ("train loss", "valid loss")


class _NotFinite(Exception):
    """Error for a gradient found by fairseq to be not finite."""


def _no_search(model: Any) -> None:
    """Raise `_NotFinite` in place of fairseq's search for the module at fault."""
    raise _NotFinite


def mend() -> None:
    """Make fairseq end a training when a loss or a gradient is not finite.

    It then saves only its ``crash.pt``, which holds the parameters from before the update. After an
    error in the input, it saves nothing.
    """
    from fairseq import checkpoint_utils, trainer
    from fairseq.logging import metrics

    @wrap(trainer.Trainer, "train_step")
    def train_step(step: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        logs: list[Mapping[str, Any]] = []
        train = self.task.train_step

        def train_and_note(*given: Any, **named: Any) -> Any:
            trained = train(*given, **named)
            logs.append(trained[-1])
            return trained

        self.task.train_step = train_and_note
        try:
            return step(self, *args, **kwargs)
        except _NotFinite as error:
            update = self.get_num_updates() + 1
            cause = " ".join(str(error.__context__).split())
            raise DataError(_diagnose(logs, update, cause)) from None
        finally:
            vars(self.task).pop("train_step", None)

    @wrap(trainer.Trainer, "save_checkpoint")
    def save_unless_refused(save: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(sys.exc_info()[1], DataError):  # the one that ends the training
            return save(self, *args, **kwargs)

    @wrap(checkpoint_utils, "save_checkpoint")
    def save_finite(
        save: Any, cfg: Any, trainer: Any, epoch_itr: Any, val_loss: float | None
    ) -> Any:
        name, value = f"valid {cfg.best_checkpoint_metric}", val_loss
        if value is None:
            name, value = "train loss", metrics.get_smoothed_values("train").get("loss", 0.0)
        per_sentence = trainer.cfg.optimization.sentence_avg
        bits = _PER_TOKEN if per_sentence else (*_PER_TOKEN, *_PER_TOKEN_OR_SENTENCE)
        if not math.isfinite(value) or (name in bits and value >= _INFINITE):
            raise DataError(
                f"{name} is {value} after update {trainer.get_num_updates()}: training has "
                f"diverged, and its checkpoint is not saved; {_REMEDY}"
            )
        return save(cfg, trainer, epoch_itr, val_loss)

    trainer.NanDetector = _no_search


def _diagnose(logs: Iterable[Mapping[str, Any]], update: int, cause: str) -> str:
    """Return a message with the names of the losses of an update that are not finite."""
    import torch

    names = dict.fromkeys(
        name
        for log in logs
        for name, value in log.items()
        if not torch.as_tensor(value).isfinite().all()
    )
    if names:
        return f"update {update}: NaN or infinite: {', '.join(names)}; {_REMEDY}"
    return f"update {update}: every loss is finite, but {cause}; {_REMEDY}"
