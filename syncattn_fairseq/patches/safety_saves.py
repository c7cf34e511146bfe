"""Save a training between two validations, so that an interruption costs little.

Fault: all versions validate whenever they save within an epoch. That validation counts towards
``--patience``, and its checkpoint may become the best one: a save changes how a training ends.
Test: ``test_safety_saves.py``; ``test_fairseqs_own_does_both`` there fails once fairseq can do it.
"""

import functools
from typing import Any


def save_between_validations() -> None:
    """Make fairseq save every ``--safety-save-updates`` updates, without a validation.

    Only ``checkpoint_last.pt`` is written.
    """
    from fairseq import checkpoint_utils

    resume = checkpoint_utils.load_checkpoint

    @functools.wraps(resume)
    def resume_and_save(cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        _extend_training()
        return resume(cfg, trainer, **kwargs)

    checkpoint_utils.load_checkpoint = resume_and_save


def _extend_training() -> None:
    """Save after fairseq has decided what is to be done after an update."""
    # Not imported with the plugin: it sets up logging for the whole program.
    from fairseq import checkpoint_utils
    from fairseq_cli import train

    decide = train.validate_and_save
    if hasattr(decide, "__wrapped__"):  # done by an earlier training of this process
        return

    @functools.wraps(decide)
    def decide_and_save(
        cfg: Any, trainer: Any, task: Any, epoch_itr: Any, valid_subsets: Any, end_of_epoch: bool
    ) -> Any:
        losses, stops = decide(cfg, trainer, task, epoch_itr, valid_subsets, end_of_epoch)
        every, updates = getattr(task.cfg, "safety_save_updates", 0), trainer.get_num_updates()
        if every > 0 and updates % every == 0 and not end_of_epoch and not stops:
            checkpoint_utils.save_checkpoint(cfg.checkpoint, trainer, epoch_itr, None)
        return losses, stops

    train.validate_and_save = decide_and_save
