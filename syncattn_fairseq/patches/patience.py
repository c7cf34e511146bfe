"""Let an interrupted training end at the same update as an uninterrupted training.

Faults: all versions forget at an interruption how many validations in a row ``--patience`` has
counted. And when a training that has ended is started again, they make more updates.
Test: ``test_resuming.py``.
"""

import logging
import sys
from typing import Any

from ..checkpoints.checkpoint_file import LAST
from .wrapping import wrap

logger = logging.getLogger(__name__)


def mend() -> None:
    """Make fairseq store the count of ``--patience`` in checkpoints and restore it on resuming."""
    from fairseq import checkpoint_utils

    @wrap(checkpoint_utils, "torch_persistent_save")
    def persist_counts(persist: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
        _store(obj)
        return persist(obj, *args, **kwargs)

    @wrap(checkpoint_utils, "load_checkpoint")
    def resume_counts(resume: Any, cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        resumed = resume(cfg, trainer, **kwargs)
        if cfg.restore_file == LAST and not trainer.checkpoint_suffix:
            _restore(None if cfg.reset_optimizer or cfg.reset_meters else resumed[0])
            _stop_if_complete(trainer, cfg.patience)
        return resumed


def _store(state: Any) -> None:
    """Add to a checkpoint the best score and the count of validations of ``--patience``."""
    from fairseq_cli.train import should_stop_early as rule

    if hasattr(rule, "num_runs") and isinstance(state, dict) and "extra_state" in state:
        counted = {"best": float(rule.best), "num_runs": rule.num_runs}
        state["extra_state"]["patience"] = counted


def _restore(extra_state: Any) -> None:
    """Restore the validation count from a checkpoint; without a checkpoint, reset the count."""
    from fairseq_cli.train import should_stop_early as rule

    vars(rule).clear()
    vars(rule).update((extra_state or {}).get("patience") or {})


def _stop_if_complete(trainer: Any, patience: int) -> None:
    """End the program if the training has ended before."""
    from fairseq_cli.train import should_stop_early as rule

    limit, updates = trainer.cfg.optimization.max_update, trainer.get_num_updates()
    if limit and updates >= limit:
        logger.info(f"the training is complete: {updates} of {limit} updates are done")
        sys.exit(0)
    without = getattr(rule, "num_runs", 0)
    if 0 < patience <= without:
        logger.info(
            f"the training is complete: the last {without} validations brought no improvement"
        )
        sys.exit(0)
